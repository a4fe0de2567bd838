"""A reader that hands each collection to an exporter at once, and counts what became of it."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from threading import Lock
from typing import Any

from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData

from otel_gpu.exports import ExportStats
from otel_gpu.pipeline import Record, not_recorded
from otel_gpu.pipeline.cadence import CadenceReader
from otel_gpu.pipeline.failure import ExportError

log = logging.getLogger(__name__)

EXPORTER_GRACE_S = 0.2
"""What an exporter gets, at the end, to break off what it is doing."""


class PushReader(CadenceReader):
    """Exports on every tick: for exporters that are local, or that keep what they cannot send.

    An exporter fails by raising (ExportError says which `error.type`) or by giving FAILURE.
    """

    def __init__(
        self,
        exporter: MetricExporter,
        *,
        interval_s: float,
        node: str = "",
        target: str = "push",
        record: Record = not_recorded,
    ) -> None:
        super().__init__(
            interval_s=interval_s,
            node=node,
            target=target,
            preferred_temporality=exporter._preferred_temporality,  # noqa: SLF001 - as the official reader asks
            preferred_aggregation=exporter._preferred_aggregation,  # noqa: SLF001 - likewise
        )
        self._exporter = exporter
        self._record = record
        self._stats = ExportStats()
        self._failures = 0  # in a row
        self._exporting = Lock()  # an exporter is never called twice at the same time
        self.begin()

    @property
    def stats(self) -> ExportStats:
        """What became of the points so far."""
        return replace(self._stats, missed=self.missed)

    def _receive_metrics(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **_: Any
    ) -> None:
        """Export a collection, and count what became of it."""
        points = _count(metrics_data)
        with self._exporting:
            self._stats = replace(self._stats, inflight=points)
            began_s = time.monotonic()
            try:
                self._export(metrics_data, timeout_millis)
            except Exception as error:  # noqa: BLE001 - whatever an exporter raises is a failed export
                self._failed(points, error, time.monotonic() - began_s)
            else:
                self._succeeded(points, time.monotonic() - began_s)

    def _collect_now(self) -> bool:
        failures = self._failures
        return super()._collect_now() and self._failures <= failures

    def _end(self, timeout_s: float) -> None:
        grace_s = max(timeout_s, EXPORTER_GRACE_S)
        self._exporter.shutdown(timeout_millis=grace_s * 1e3)
        self._thread.join(grace_s)

    def _export(self, metrics_data: MetricsData, timeout_millis: float) -> None:
        result = self._exporter.export(metrics_data, timeout_millis=timeout_millis)
        if result is not MetricExportResult.SUCCESS:
            raise ExportError("_OTHER", "the exporter gave no reason")

    def _succeeded(self, points: int, seconds: float) -> None:
        if self._failures:
            log.info("%s: accepted again, after %d failures", self.target, self._failures)
        self._failures = 0
        exported = self._stats.exported + points
        self._stats = replace(
            self._stats, exported=exported, inflight=0, last_success_ns=time.time_ns()
        )
        self._record("otel.sdk.exporter.operation.duration", seconds, ())

    def _failed(self, points: int, error: Exception, seconds: float) -> None:
        kind = error.kind if isinstance(error, ExportError) else type(error).__name__
        if not self._failures:
            log.warning("%s: %d points were not exported: %s", self.target, points, error)
        self._failures += 1
        failed = {**self._stats.failed, kind: self._stats.failed.get(kind, 0) + points}
        self._stats = replace(self._stats, failed=failed, inflight=0, last_error=str(error))
        self._record("otel.sdk.exporter.operation.duration", seconds, (("error.type", kind),))


def _count(data: MetricsData) -> int:
    return sum(
        len(metric.data.data_points)
        for resource_metrics in data.resource_metrics
        for scope_metrics in resource_metrics.scope_metrics
        for metric in scope_metrics.metrics
    )
