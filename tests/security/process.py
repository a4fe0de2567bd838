"""`otel-gpu` as a process whose every word is kept: a test looks for what it must not say."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.running import command, free_port, wait_for


class Running:
    """`otel-gpu run`: its process, the port of its endpoint, what it wrote."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process = process
        self.port = port
        self._log = log

    @property
    def log(self) -> str:
        """Everything that it wrote so far, to either stream."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def page(self, path: str, headers: Mapping[str, str] | None = None) -> str:
        """Fetch a page whatever its status; "" while nobody serves it."""
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers or {})
        try:
            with urllib.request.urlopen(asked, timeout=5) as answer:  # noqa: S310 - the agent's own
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return error.read().decode()
        except OSError:
            return ""

    def wait_until_ready(self) -> None:
        """Wait for the endpoint."""

        def answers() -> bool:
            assert self.process.poll() is None, self.log
            return self.page("/readyz") == "ok\n"

        wait_for(answers, "ready agent")

    def children(self) -> list[int]:
        """Give the ids of its child processes: the worker."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(each) for task in tasks for each in task.read_text().split()]


def written(folder: Path, pipeline: Sequence[Mapping[str, Any]], **more: Any) -> Path:
    """Write a configuration of the simulated backend that logs all it can."""
    path = folder / "agent.yaml"
    path.write_text(
        json.dumps(
            {
                "version": 1,
                "backend": "simulated",
                "telemetry": {"log_level": "debug", "log_format": "json"},
                "pipeline": pipeline,
                **more,
            }
        ),
        encoding="utf-8",
    )
    return path


@contextmanager
def running(
    folder: Path,
    pipeline: Sequence[Mapping[str, Any]],
    *,
    env: Mapping[str, str] | None = None,
    before: Sequence[str] = (),
    endpoint: Mapping[str, Any] | None = None,
) -> Iterator[Running]:
    """Have an agent run with an endpoint and these parts, and end it whatever happens.

    `before` are the first words of the command, such as those that confine it.
    """
    port = free_port()
    served = {"prometheus": {"address": f"127.0.0.1:{port}", **(endpoint or {})}}
    config = written(folder, [served, *pipeline])
    log = folder / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [*before, *command("run", "--config", str(config))],
            stdout=stream,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
        )
    try:
        yield Running(process, port, log)
    finally:
        process.kill()
        process.wait()
