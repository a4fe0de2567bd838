"""`otel-gpu run` as a process, for tests of what a user sees of it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

PATIENCE_S = 20.0

T = TypeVar("T")


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "otel_gpu", *words]


def otel_gpu(
    *words: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        command(*words),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        check=False,
    )


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def running(*words: str) -> Iterator[subprocess.Popen[str]]:
    """Have a command run, and end it whatever happens."""
    process = subprocess.Popen(command(*words), stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def page(port: int, path: str = "/metrics") -> str:
    """Fetch a page; "" while nobody serves it, or while it says that it is not ready."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return str(answer.read().decode())
    except (urllib.error.URLError, ConnectionError):
        return ""


def wait_for(probe: Callable[[], T], what: str) -> T:
    """Ask again until the answer is something."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not (answer := probe()):
        assert time.monotonic() < deadline_s, f"no {what} within {PATIENCE_S} s"
        time.sleep(0.05)
    return answer
