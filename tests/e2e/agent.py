"""The agent as a user starts it: the command line, a configuration file, a process."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .process import Server, free_ports, get


class Agent(Server):
    """`otel-gpu run` on a port of its own; `pipeline` adds parts to the Prometheus one."""

    def __init__(
        self,
        directory: Path,
        *,
        backend: str = "simulated",
        pipeline: Sequence[Mapping[str, Any]] = (),
        config: Mapping[str, Any] | None = None,
    ) -> None:
        (self.port,) = free_ports(1)
        parts = [{"prometheus": {"address": f"127.0.0.1:{self.port}"}}, *pipeline]
        self._pushing = {f"otlp/{at}" for at in range(sum("otlp" in part for part in parts))}
        settings = {
            "version": 1,
            "backend": backend,
            "pipeline": parts,
            **(config or {}),
        }
        path = directory / "agent.json"
        path.write_text(json.dumps(settings), encoding="utf-8")  # JSON is YAML too
        super().__init__(
            "otel-gpu",
            [sys.executable, "-m", "otel_gpu", "run", "--config", str(path)],
            directory,
            f"http://127.0.0.1:{self.port}/readyz?fresh=1",
        )

    @property
    def target(self) -> str:
        """host:port to scrape."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The page."""
        return f"http://{self.target}/metrics"

    def exports(self, part: str) -> dict[str, Any]:
        """What became of the points of one part of the pipeline, such as otlp/0, so far."""
        stats: dict[str, Any] = self._status()[part]
        return stats

    def _status(self) -> dict[str, Any]:
        status = json.loads(get(f"http://{self.target}/debug/status"))
        pipeline: dict[str, Any] = status["pipeline"]
        return pipeline

    def _is_ready(self) -> bool:
        # The page is there, and the agent ready, before the parts that come after it.
        return super()._is_ready() and self._pushing <= self._status().keys()
