"""Names of processes, of real ones; and whether NVML's lists can be trusted."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from otel_gpu.backends.processes import HOST_PID_NAMESPACE, executable, host_pids, named

SECRET = "--token=hunter2"
# Lives until the test has read its name, and is killed then.
SLEEPER = (sys.executable, "-c", "import time; time.sleep(60)", SECRET)


def test_a_process_is_named_by_the_file_that_it_runs() -> None:
    assert executable(os.getpid()) == Path("/proc/self/exe").resolve().name


def test_nothing_of_its_command_line_is_told() -> None:
    with subprocess.Popen(SLEEPER) as process:
        told = named([{"pid": process.pid, "usedGpuMemory": 5}])
        process.kill()
    assert set(told[0]) == {"pid", "usedGpuMemory", "name"}
    assert SECRET not in str(told)


def test_a_file_that_was_replaced_since_keeps_its_name(tmp_path: Path) -> None:
    program = tmp_path / "trainer"
    program.write_bytes(Path("/bin/sleep").read_bytes())
    program.chmod(0o755)
    with subprocess.Popen([program, "60"]) as process:
        until_named(process.pid, "trainer")
        program.unlink()
        assert Path(f"/proc/{process.pid}/exe").readlink().name == "trainer (deleted)"
        assert executable(process.pid) == "trainer"
        process.kill()


def test_a_name_that_is_not_utf8_can_be_sent_all_the_same(tmp_path: Path) -> None:
    program = os.fsencode(tmp_path) + b"/train\xff"
    Path(os.fsdecode(program)).write_bytes(Path("/bin/sleep").read_bytes())
    Path(os.fsdecode(program)).chmod(0o755)
    with subprocess.Popen([program, "60"]) as process:
        until_named(process.pid, "train\ufffd")
        process.kill()


def test_where_the_file_cannot_be_read_its_own_short_name_is_told() -> None:
    """A process that ended and was not waited for has no file any more, and still a name."""
    with subprocess.Popen(["/bin/sleep", "0"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(OSError, match=str(process.pid)):
            Path(f"/proc/{process.pid}/exe").readlink()
        assert executable(process.pid) == "sleep"


def test_a_process_that_is_gone_has_no_name_and_is_listed_all_the_same() -> None:
    with subprocess.Popen(["/bin/sleep", "0"]) as process:
        process.wait()
    assert executable(process.pid) == ""
    assert named([{"pid": process.pid}]) == [{"pid": process.pid, "name": ""}]


def test_lists_are_trusted_in_the_hosts_namespace_of_pids_alone(tmp_path: Path) -> None:
    own = Path("/proc/self/ns/pid")
    assert host_pids(own) == (own.stat().st_ino == HOST_PID_NAMESPACE)
    assert not host_pids(tmp_path), "another inode is another namespace"
    assert not host_pids(tmp_path / "nothing"), "who cannot know does not say yes"


def test_of_its_own_it_looks_at_the_namespace_of_this_process() -> None:
    assert host_pids() == host_pids(Path("/proc/self/ns/pid"))


def until_named(pid: int, name: str) -> None:
    """Wait until the new process runs its own program."""
    deadline_s = time.monotonic() + 10
    while executable(pid) != name:
        assert time.monotonic() < deadline_s
        time.sleep(0.005)
