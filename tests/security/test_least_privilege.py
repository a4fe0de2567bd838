"""The agent as nobody, without capabilities, on a root that it cannot write to."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.receiver import HttpReceiver, Receiver
from tests.running import PATIENCE_S, wait_for
from tests.security.confinement import NOBODY, Confinement, obstacle
from tests.security.process import running

KERNEL_LOG = "from otel_gpu.events.kernel_log import KernelLog; print(KernelLog().reason)"
EXECUTABLE = "from otel_gpu.backends.processes import executable"
NAMESPACE = (
    "from pathlib import Path; from otel_gpu.doctor.facts.process import look_at_process as look;"
    "seen = look(Path('/')); print(seen.uid, seen.capabilities, seen.namespace.is_host)"
)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that others can enter; pytest's own is shut to them."""
    path = Path(tempfile.mkdtemp(prefix="otel-gpu-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def queue(folder: Path) -> Path:
    """The queue's directory, which belongs to nobody."""
    path = folder / "queue"
    path.mkdir(mode=0o700)
    os.chown(path, NOBODY, NOBODY) if os.geteuid() == 0 else None
    return path


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    server = HttpReceiver(receiver)
    yield receiver
    server.close()


def usable(confinement: Confinement) -> Confinement:
    if confinement.filtered and platform.machine() != "x86_64":
        pytest.skip("the filter's numbers are those of x86-64")
    if reason := obstacle(confinement):
        pytest.skip(reason)
    return confinement


def rights(pid: int) -> dict[str, str]:
    """Read what the kernel says of a process: user, groups, capabilities."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return {name: text.strip() for name, _, text in (line.partition(":") for line in lines)}


def said(words: list[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("read_only", "filtered"),
    [(False, False), (True, False), (True, True)],
    ids=["nobody", "read-only root", "read-only root and system calls filtered"],
)
def test_it_serves_pushes_and_ends_in_time_and_writes_its_queue_only(
    folder: Path, queue: Path, receiver: Receiver, *, read_only: bool, filtered: bool
) -> None:
    confined = usable(
        Confinement(folder, read_only=read_only, filtered=filtered, writable=(queue,))
    )
    target = {
        "endpoint": f"http://127.0.0.1:{receiver.http_port}",
        "interval": "200ms",
        "queue": {"directory": str(queue)},
    }
    with running(folder, [{"otlp": target}], before=confined.command([])) as agent:
        agent.wait_until_ready()
        wait_for(lambda: "hw_power_watts{" in agent.page("/metrics"), "reading of power")
        receiver.wait(2)
        (worker,) = agent.children()
        for pid in (agent.process.pid, worker):
            held = rights(pid)
            assert set(held["Uid"].split()) == set(held["Gid"].split()) == {str(NOBODY)}
            assert (held["Groups"], held["NoNewPrivs"]) == ("", "1")
            assert {held[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {
                "0" * 16
            }
            assert held["Seccomp"] == ("2" if filtered else "0")
        receiver.statuses.extend([503] * 1_000)
        wait_for(lambda: list(queue.glob("*.batch")), "batch on disk")
        agent.process.send_signal(signal.SIGTERM)
        assert agent.process.wait(PATIENCE_S) == 0
        lines = [json.loads(line) for line in agent.log.splitlines()]

    assert {line["logger"] for line in lines if line["level"] not in {"debug", "info"}} <= {
        "otel_gpu.pipeline.delivery",  # which tells of the 503
        "otel_gpu.control",  # which finds no place for its socket
    }
    left = sorted(path.name for path in queue.iterdir())
    assert {"lock", "format"} <= set(left)
    assert all(name.endswith(".batch") for name in set(left) - {"lock", "format"})
    assert {path.stat().st_uid for path in queue.iterdir()} == {NOBODY}
    assert sorted(path.name for path in folder.iterdir() if not path.name.startswith("stage")) == [
        "agent.yaml",
        "log",
        "queue",
    ]


def test_a_queue_that_cannot_be_written_stops_the_start_and_is_named(
    folder: Path, queue: Path, receiver: Receiver
) -> None:
    confined = usable(Confinement(folder, read_only=True))
    target = {
        "endpoint": f"http://127.0.0.1:{receiver.http_port}",
        "queue": {"directory": str(queue)},
    }
    with running(folder, [{"otlp": target}], before=confined.command([])) as agent:
        assert agent.process.wait(PATIENCE_S) == 2
        assert f"pipeline.otlp.queue.directory: {queue}: Read-only file system" in agent.log


def test_the_kernel_log_needs_cap_syslog_and_says_so(folder: Path) -> None:
    confined = usable(Confinement(folder))
    words = [sys.executable, "-c", KERNEL_LOG]
    restricted = Path("/proc/sys/kernel/dmesg_restrict")
    if said(words) or restricted.read_text(encoding="utf-8").strip() != "1":
        pytest.skip("root cannot read /dev/kmsg here, or everybody can (kernel.dmesg_restrict)")

    assert "CAP_SYSLOG" in said(confined.command(words))


def test_of_others_processes_it_knows_the_short_name_only(folder: Path) -> None:
    confined = usable(Confinement(folder))
    program = folder / "a-name-of-more-than-fifteen"
    program.write_bytes(Path(shutil.which("sleep") or "").read_bytes())
    program.chmod(0o755)
    process = subprocess.Popen([str(program), "60"])
    words = [sys.executable, "-c", f"{EXECUTABLE}; print(executable({process.pid}))"]
    wait_for(lambda: rights(process.pid)["Name"] == program.name[:15], "program")

    try:
        assert said(words) == program.name
        assert said(confined.command(words)) == program.name[:15]
    finally:
        process.kill()
        process.wait()


def test_what_it_lacks_is_seen_by_doctor(folder: Path) -> None:
    confined = usable(Confinement(folder, own_pids=True))

    assert said(confined.command([sys.executable, "-c", NAMESPACE])) == f"{NOBODY} 0 False"


def test_the_filter_of_system_calls_kills_who_makes_one(folder: Path) -> None:
    confined = usable(Confinement(folder, filtered=True))
    unshare = shutil.which("unshare") or ""

    done = subprocess.run(confined.command([unshare, "--user", "true"]), check=False)

    assert done.returncode == -signal.SIGSYS
