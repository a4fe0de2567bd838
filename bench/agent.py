"""The agent as a process, and what it costs its machine."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from otel_gpu.usage import Usage, usage

PATIENCE_S = 20.0


class Running(NamedTuple):
    """An agent that serves."""

    pid: int
    worker: int
    port: int

    @property
    def page(self) -> str:
        return f"http://127.0.0.1:{self.port}/metrics"

    def usage(self) -> tuple[Usage, Usage]:
        """What the agent and its worker used so far."""
        used = usage(self.pid), usage(self.worker)
        if used[0] is None or used[1] is None:
            raise RuntimeError("the agent is gone")
        return used[0], used[1]


class Sink(NamedTuple):
    """A collector in a process of its own."""

    http: str
    grpc: str


@contextmanager
def sink() -> Iterator[Sink]:
    command = [sys.executable, "-m", "bench.sink"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as one:
        http, grpc = cast("IO[str]", one.stdout).readline().split()
        yield Sink(f"http://127.0.0.1:{http}", f"http://127.0.0.1:{grpc}")
        one.communicate("")


@contextmanager
def agent(backend: str, otlp: dict[str, Any], **config: Any) -> Iterator[Running]:
    """Run an agent, with `otlp` and a Prometheus endpoint, until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    parts = [{"prometheus": {"address": f"127.0.0.1:{port}"}}, {"otlp": otlp}]
    whole = {"version": 1, "backend": backend, "pipeline": parts, **config}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "agent.json"
        file.write_text(json.dumps(whole))
        command = [sys.executable, "-m", "otel_gpu", "run", "--config", str(file)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            _wait(port)
            (worker,) = _children(process.pid)
            yield Running(process.pid, worker, port)
            process.terminate()


def _wait(port: int) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the agent does not become ready")


def _children(pid: int) -> list[int]:
    threads = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for thread in threads for child in (thread / "children").read_text().split()]
