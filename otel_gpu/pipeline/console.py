"""The console: a line for each GPU, to look at; for machines there is `file`, with every point."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import datetime
from typing import Any, TextIO

from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData

from otel_gpu.config import Console
from otel_gpu.pipeline import Context
from otel_gpu.pipeline.glance import glances
from otel_gpu.pipeline.push import PushReader

INTERVAL_S = 5.0
"""That of the default tier: each line has something new."""


class LineExporter(MetricExporter):
    """Writes a line for each GPU and MIG instance of a collection."""

    def __init__(self, out: TextIO) -> None:
        super().__init__()
        self._out = out

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **_: Any
    ) -> MetricExportResult:
        """Write the lines. What writing raises is counted, and logged once, by the reader."""
        del timeout_millis
        now = datetime.now().astimezone().strftime("%H:%M:%S")
        self._out.write("".join(f"{now} {line}\n" for line in lines(metrics_data)))
        self._out.flush()
        return MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Nothing is held back."""
        del timeout_millis
        return True

    def shutdown(self, timeout_millis: float = 30_000, **_: Any) -> None:
        """Leave the stream open: it is not ours."""


def lines(data: MetricsData) -> Iterable[str]:
    """Write the GPUs of a collection, by name."""
    found = sorted(glances(data).values())
    if not found:
        yield "no GPU has readings"
    for name, readings in found:
        yield f"{name:<8} " + "  ".join(f"{title} {text}" for title, text in readings.items())


def build(_options: Console, context: Context) -> PushReader:
    """Make the reader for `pipeline: - console:`."""
    exporter = LineExporter(sys.stdout)
    return PushReader(exporter, interval_s=INTERVAL_S, node=context.node, target="console")
