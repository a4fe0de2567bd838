"""A page of the readings for node_exporter's textfile collector, written on every tick."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData

from otel_gpu.config import values
from otel_gpu.model import ConfigError
from otel_gpu.pipeline import Context
from otel_gpu.pipeline.exposition import Exposition, Format
from otel_gpu.pipeline.push import PushReader

WHERE = "pipeline.textfile"


class PageExporter(MetricExporter):
    """Replaces the page by each collection's, at once: node_exporter never reads half of it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._aside = path.with_name(f"{path.name}.new")  # which node_exporter passes over
        self._exposition = Exposition()

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **_: Any
    ) -> MetricExportResult:
        """Write the page. What this raises is counted, and logged once, by the reader."""
        del timeout_millis
        self._aside.write_bytes(self._exposition.render(metrics_data, Format.TEXT))
        self._aside.replace(self._path)
        return MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Nothing is held back."""
        del timeout_millis
        return True

    def shutdown(self, timeout_millis: float = 30_000, **_: Any) -> None:
        """Take the page away: nobody renews it any more."""
        del timeout_millis
        self._path.unlink(missing_ok=True)


def build(options: Mapping[str, Any], context: Context) -> PushReader:
    """Make the part. Raises ConfigError, whose text is all that a user sees."""
    if unknown := set(options) - {"path", "interval"}:
        raise ConfigError(f"{WHERE}.{min(unknown)}: unknown key; those here are path and interval")
    path = _path(options.get("path"))
    return PushReader(
        PageExporter(path),
        interval_s=_interval_s(options.get("interval", "15s")),
        node=context.node,
        target=f"textfile {path}",
        record=context.record,
    )


def _path(given: object) -> Path:
    if not isinstance(given, str) or not given.endswith(".prom"):
        raise ConfigError(f"{WHERE}.path: name a file that ends in .prom; no other is collected")
    path = Path(given)
    if not path.parent.is_dir():
        raise ConfigError(f"{WHERE}.path: {path.parent} is not there; name node_exporter's folder")
    return path


def _interval_s(given: object) -> float:
    try:
        seconds = values.duration(given)
    except ValueError as error:
        raise ConfigError(f"{WHERE}.interval: {given} {error}") from error
    if seconds < 1:
        raise ConfigError(f"{WHERE}.interval: {given} is too often; 1s is the least")
    return seconds
