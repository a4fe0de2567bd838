"""The file: each collection is a line of OTLP JSON, for the Collector's `otlpjsonfile` receiver."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData

from otel_gpu.config import File
from otel_gpu.model import ConfigError
from otel_gpu.pipeline import Context
from otel_gpu.pipeline.otlp_json import line
from otel_gpu.pipeline.push import PushReader
from otel_gpu.pipeline.rotating import RotatingFile

INTERVAL_S = 15.0
"""That of `otlp`: the file has what a backend would have got. Three times the default tier.

Eight GPUs with the standard profile make a line of 0.25 MB, so that 100 MiB are two hours of them.
"""


class FileExporter(MetricExporter):
    """Appends each collection to a file."""

    def __init__(self, file: RotatingFile) -> None:
        super().__init__()
        self._file = file

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **_: Any
    ) -> MetricExportResult:
        """Append a line. Raises OSError, which the reader counts, and logs once."""
        del timeout_millis
        self._file.append(f"{line(metrics_data)}\n".encode("ascii"))
        return MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Nothing is held back."""
        del timeout_millis
        return True

    def shutdown(self, timeout_millis: float = 30_000, **_: Any) -> None:
        """Nothing is open."""


def build(options: File, context: Context) -> PushReader:
    """Make the reader for `pipeline: - file:`. Raises ConfigError: it cannot be written there."""
    file = RotatingFile(options.path, options.rotate, options.keep)
    try:
        file.prepare()
    except OSError as error:
        raise ConfigError(
            f"pipeline.file.path: {error.filename}: {error.strerror}; "
            "name a file in a directory that is there, where the agent's user may make files"
        ) from error
    return PushReader(
        FileExporter(file),
        interval_s=INTERVAL_S,
        node=context.node,
        target=f"file {options.path}",
        record=context.record,
    )
