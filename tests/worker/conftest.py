from __future__ import annotations

from pathlib import Path

import pytest

from tests.worker.faults import Faults


@pytest.fixture
def faults(tmp_path: Path) -> Faults:
    return Faults(tmp_path)
