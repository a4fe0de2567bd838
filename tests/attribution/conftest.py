"""The kubelet that the tests of this room talk to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attribution.kubernetes.node import Node


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """Start a kubelet; it ends with the test."""
    node = Node(tmp_path / "kubelet.sock")
    node.serve()
    yield node
    node.die()
