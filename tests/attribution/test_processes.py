"""Where the processes on GPUs run, read from a /proc of the test's."""

from pathlib import Path

import pytest

from otel_gpu.attribution import View
from otel_gpu.attribution.cgroups import Place
from otel_gpu.attribution.processes import Processes
from tests.attribution.proc import Proc, container_id


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path / "proc")


def test_each_process_on_each_gpu_has_a_place(proc: Proc) -> None:
    proc.in_container(7)
    proc.outside(8)
    view = View(pids={"GPU-0": (7, 8), "GPU-1": (7,)})
    inside = Place(container=container_id(7))
    assert dict(Processes(proc.path).places(view)) == {
        ("GPU-0", 7): inside,
        ("GPU-0", 8): Place(),
        ("GPU-1", 7): inside,
    }


def test_a_process_that_has_ended_has_none(proc: Proc) -> None:
    assert Processes(proc.path).place(7) is None
    assert Processes(proc.path).user(7) is None
    assert dict(Processes(proc.path).places(View(pids={"GPU-0": (7,)}))) == {}


def test_what_is_no_text_is_no_place(proc: Proc) -> None:
    proc.outside(7)
    (proc.path / "7" / "cgroup").write_bytes(b"0::/\xff\xfe\n\x00")
    assert Processes(proc.path).place(7) == Place()


def test_a_process_is_its_user_s(proc: Proc) -> None:
    proc.outside(7)
    assert Processes(proc.path).user(7) == (proc.path / "7").stat().st_uid


def test_the_real_proc_can_be_read() -> None:
    assert Processes().place(1) is not None
