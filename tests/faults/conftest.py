from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_nvml.conftest import build, fake_nvml, objects
from tests.fake_nvml.machine import FakeNvml
from tests.faults.node import Node

__all__ = ["build", "fake_nvml", "node", "objects", "simulated"]


@pytest.fixture
def node(fake_nvml: FakeNvml, tmp_path: Path) -> Iterator[Node]:
    """Give a machine of three GPUs behind the C fake library; its agent is to be started."""
    node = Node(tmp_path, "nvml", fake_nvml)
    node.furnish()
    yield node
    node.end()


@pytest.fixture
def simulated(tmp_path: Path) -> Iterator[Callable[..., Node]]:
    """Make simulated machines, by the words after `simulated:`."""
    made: list[Node] = []

    def make(spec: str, **settings: Any) -> Node:
        node = Node(tmp_path, f"simulated:{spec}", None)
        made.append(node)
        node.start(**settings)
        return node

    yield make
    for node in made:
        node.end()
