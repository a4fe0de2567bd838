from __future__ import annotations

from pathlib import Path

import pytest

from otel_gpu.worker.sleeping import asleep
from otel_gpu.worker.supervisor import Supervisor
from tests.worker.faults import Faults

GPU, AUDIO, BRIDGE = "0x030200", "0x040300", "0x060400"


def device(folder: Path, name: str, status: str, kind: str = GPU, vendor: str = "0x10de") -> None:
    (folder / name / "power").mkdir(parents=True)
    for file, word in (("vendor", vendor), ("class", kind), ("power/runtime_status", status)):
        (folder / name / file).write_text(f"{word}\n", encoding="ascii")


def test_gpus_sleep_when_each_is_suspended(tmp_path: Path) -> None:
    device(tmp_path, "0000:01:00.0", "suspended")
    assert asleep(tmp_path)
    device(tmp_path, "0000:02:00.0", "active")
    assert not asleep(tmp_path)


def test_only_gpus_of_nvidia_count(tmp_path: Path) -> None:
    device(tmp_path, "0000:00:02.0", "suspended", vendor="0x8086")
    device(tmp_path, "0000:01:00.1", "suspended", kind=AUDIO)
    device(tmp_path, "0000:00:01.0", "suspended", kind=BRIDGE)
    assert not asleep(tmp_path)


@pytest.mark.parametrize("status", ["active", "suspending", "resuming", "unsupported", ""])
def test_any_other_state_is_not_sleep(tmp_path: Path, status: str) -> None:
    device(tmp_path, "0000:01:00.0", status)
    assert not asleep(tmp_path)


def test_where_there_is_no_such_folder_nothing_sleeps(tmp_path: Path) -> None:
    assert not asleep(tmp_path / "pci")


def test_gpus_that_sleep_are_not_woken_and_are_read_once_they_wake(
    faults: Faults, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    sleeping = True
    door = Supervisor("nvml", sleeps=lambda: sleeping)
    door._backend = faults.backend
    for now in range(3):
        assert door.system(float(now)) is None
    assert "the GPUs sleep" in str(door.trouble)
    assert len(caplog.records) == 1
    sleeping = False
    assert door.system(4.0) is not None
    assert door.trouble is None
    sleeping = True  # which cannot be while we have it open; then there is nothing to wake
    assert door.system(5.0) is not None
    door.close()
