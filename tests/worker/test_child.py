from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.worker.faults import Faults, eventually

AGENT = """
import signal, sys
from otel_gpu.worker.supervisor import Supervisor

door = Supervisor({backend!r}, deadline_s=30)

def leave(*_):
    sys.exit(0)

signal.signal(signal.SIGTERM, leave)
try:
    door.system(0.0)
    print(door._worker.pid, flush=True)
    {then}
finally:
    door.close()
"""


def agent(faults: Faults, then: str) -> tuple[subprocess.Popen[str], int]:
    """Start a process that has a worker; give it, and its worker's pid."""
    process = subprocess.Popen(
        [sys.executable, "-c", AGENT.format(backend=faults.backend, then=then)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout
    return process, int(process.stdout.readline())


def running(pid: int) -> bool:
    """Whether a process runs: one that ended and is not reaped has no memory."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except FileNotFoundError:
        return False


def test_a_worker_ends_when_its_agent_is_killed(faults: Faults) -> None:
    process, worker = agent(faults, "signal.pause()")
    assert running(worker)
    process.kill()
    process.communicate()
    assert eventually(lambda: not running(worker))
    assert faults.closed  # it released the driver before it left


def test_an_agent_with_a_hung_worker_leaves_soon_after_sigterm(faults: Faults) -> None:
    process, worker = agent(faults, "sys.stdin.readline(); door.ask([('GPU-a', [])])")
    os.kill(worker, signal.SIGSTOP)
    assert process.stdin
    process.stdin.write("ask now, and it will not be answered\n")
    process.stdin.flush()
    before_s = time.monotonic()
    process.terminate()
    process.communicate(timeout=10)
    assert time.monotonic() - before_s < 4
    assert eventually(lambda: not running(worker))
