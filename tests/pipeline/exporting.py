"""An exporter that keeps what it gets, and does what a test says."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData

from otel_gpu.exports import ExportStats
from otel_gpu.pipeline.cadence import phase_s
from otel_gpu.pipeline.push import PushReader

Push = Callable[..., PushReader]

PATIENCE_S = 10.0
NEVER_S = 3600.0

Answer = Callable[[], MetricExportResult]


class Exporter(MetricExporter):
    """Keeps what it is given, and does what the test says."""

    def __init__(self, answer: Answer = lambda: MetricExportResult.SUCCESS) -> None:
        super().__init__()
        self.answer = answer
        self.exported: list[MetricsData] = []
        self.began_unix_s: list[float] = []
        self.came = threading.Condition()
        self.shut_down = threading.Event()

    def export(self, metrics_data: MetricsData, *_: Any, **__: Any) -> MetricExportResult:
        with self.came:
            self.exported.append(metrics_data)
            self.began_unix_s.append(time.time())
            self.came.notify_all()
        return self.answer()

    def wait(self, count: int) -> None:
        with self.came:
            assert self.came.wait_for(lambda: len(self.exported) >= count, PATIENCE_S)

    def lateness_s(self, interval_s: float, node: str) -> list[float]:
        """Give how long after the node's ticks, on the wall clock, the exports began."""
        phase = phase_s(node, interval_s)
        return [(unix_s - phase) % interval_s for unix_s in self.began_unix_s]

    def force_flush(self, *_: Any) -> bool:
        return True

    def shutdown(self, *_: Any, **__: Any) -> None:
        self.shut_down.set()


def raising(error: Exception) -> Answer:
    def answer() -> MetricExportResult:
        raise error

    return answer


def settled(reader: PushReader, enough: Callable[[ExportStats], bool]) -> ExportStats:
    deadline_s = time.monotonic() + PATIENCE_S
    while not enough(reader.stats):
        assert time.monotonic() < deadline_s, reader.stats
        time.sleep(0.005)
    return reader.stats
