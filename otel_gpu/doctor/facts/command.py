"""Runs a command for its output, with a deadline that holds even for one that cannot be killed."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping, Sequence

from otel_gpu.worker.process import stopped

LAST_WORDS_S = 0.2

_abandoned: list[subprocess.Popen[bytes]] = []  # held, so that nothing ever waits for them


def output(command: Sequence[str], environ: Mapping[str, str], deadline_s: float) -> str | None:
    """Give what a command printed; None when it is not there, failed, or took too long."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environ,
        )
    except OSError:
        return None
    try:
        text, _ = process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        leave(process)
        return None
    return text.decode(errors="replace") if process.returncode == 0 else None


def leave(process: subprocess.Popen[bytes]) -> None:
    """Kill a process, and go on without it when the kernel does not let it die."""
    if process.stdout:
        process.stdout.close()
    if not stopped(process, signal.SIGKILL, LAST_WORDS_S):
        _abandoned.append(process)
