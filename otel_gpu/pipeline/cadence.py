"""A push reader that keeps its rhythm: the same phase on every tick, whatever a collector does.

The official periodic reader waits one interval after each export, so a slow collector stretches the
period, and a fleet that was started together pushes together.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import Any

from opentelemetry.sdk.metrics.export import (
    MetricExporter,
    MetricExportResult,
    MetricReader,
    MetricsData,
)

from otel_gpu.model import Attributes, OtelGpuError

log = logging.getLogger(__name__)

LAST_EXPORT_S = 1.5
"""How long a shutdown waits for the last export: a dead collector must not hold up the agent."""

EXPORTER_GRACE_S = 0.2
"""What an exporter gets, after that, to break off what it is doing."""

Record = Callable[[str, float, Attributes], None]
"""Takes a value of one of the agent's own histograms: name, value, attributes."""


class ExportError(OtelGpuError):
    """Points were not exported: `kind` is the `error.type`, which takes few values, then why."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class ExportStats:
    """What became of the points of one target. Immutable: a reader of it sees one moment.

    `failed` counts points by `error.type`; `missed` counts ticks that came while an export was
    under way; `last_success_ns` is Unix time, None before the first success.
    """

    exported: int = 0
    inflight: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    missed: int = 0
    last_error: str = ""
    last_success_ns: int | None = None


def phase_s(node: str, interval_s: float) -> float:
    """Give a node's own offset into the interval: always the same, and spread over a fleet."""
    digest = hashlib.blake2b(node.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64 * interval_s


def until_tick_s(unix_s: float, interval_s: float, phase: float) -> float:
    """Give the seconds until the clock is `phase` into an interval: 0 to `interval_s`."""
    return (phase - unix_s) % interval_s


def next_tick_s(tick_s: float, now_s: float, interval_s: float) -> tuple[float, int]:
    """Give the next tick on the grid of this one that is still to come, and how many are past."""
    missed = max(0, int((now_s - tick_s) // interval_s))
    return tick_s + (missed + 1) * interval_s, missed


class _Flush:
    """A request to export now; `exported` tells, once `done` is set, whether that worked."""

    def __init__(self) -> None:
        self.done = Event()
        self.exported = False


class PushReader(MetricReader):
    """Collects on every tick and hands the data to an exporter, in a thread of its own.

    `target` names the exporter in the log. Nothing that a collection or an export raises ends the
    thread. It starts at once and passes over the ticks before a MeterProvider knows it.
    """

    def __init__(
        self,
        exporter: MetricExporter,
        *,
        interval_s: float,
        node: str = "",
        target: str = "push",
        record: Record = lambda _metric, _value, _attributes: None,
    ) -> None:
        super().__init__(
            preferred_temporality=exporter._preferred_temporality,  # noqa: SLF001 - as the official reader asks
            preferred_aggregation=exporter._preferred_aggregation,  # noqa: SLF001 - likewise
        )
        self.stats = ExportStats()
        self._exporter = exporter
        self._interval_s = interval_s
        self._phase_s = phase_s(node, interval_s)
        self._target = target
        self._record = record
        self._exporting = Lock()  # an exporter is never called twice at the same time
        self._failures = 0
        self._requests: SimpleQueue[_Flush | None] = SimpleQueue()  # None: export once more, end
        self._stopping = False
        self._thread = Thread(target=self._run, daemon=True, name="otel-gpu-push")
        self._thread.start()

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Collect and export now; whether that was done, and accepted, within the time."""
        flush = _Flush()
        self._requests.put(flush)
        return flush.done.wait(timeout_millis / 1e3) and flush.exported

    def shutdown(self, timeout_millis: float = 30_000, **_: Any) -> None:
        """Export once more and stop; with a collector that does not answer, in under 2 s."""
        if self._stopping:
            return
        self._stopping = True
        limit_s = timeout_millis / 1e3
        self._requests.put(None)
        self._thread.join(min(LAST_EXPORT_S, limit_s))
        grace_s = min(EXPORTER_GRACE_S, limit_s)
        self._exporter.shutdown(timeout_millis=grace_s * 1e3)
        self._thread.join(grace_s)

    def _receive_metrics(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **_: Any
    ) -> None:
        """Export a collection, and count what became of it."""
        points = _count(metrics_data)
        with self._exporting:
            self.stats = replace(self.stats, inflight=points)
            began_s = time.monotonic()
            try:
                self._export(metrics_data, timeout_millis)
            except Exception as error:  # noqa: BLE001 - whatever an exporter raises is a failed export
                self._failed(points, error, time.monotonic() - began_s)
            else:
                self._succeeded(points, time.monotonic() - began_s)

    def _export(self, metrics_data: MetricsData, timeout_millis: float) -> None:
        result = self._exporter.export(metrics_data, timeout_millis=timeout_millis)
        if result is not MetricExportResult.SUCCESS:
            raise ExportError("_OTHER", "the exporter gave no reason")

    def _succeeded(self, points: int, seconds: float) -> None:
        if self._failures:
            log.info("%s: accepted again, after %d failures", self._target, self._failures)
        self._failures = 0
        exported = self.stats.exported + points
        self.stats = replace(
            self.stats, exported=exported, inflight=0, last_success_ns=time.time_ns()
        )
        self._record("otel.sdk.exporter.operation.duration", seconds, ())

    def _failed(self, points: int, error: Exception, seconds: float) -> None:
        kind = error.kind if isinstance(error, ExportError) else type(error).__name__
        if not self._failures:
            log.warning("%s: %d points were not exported: %s", self._target, points, error)
        self._failures += 1
        failed = {**self.stats.failed, kind: self.stats.failed.get(kind, 0) + points}
        self.stats = replace(self.stats, failed=failed, inflight=0, last_error=str(error))
        self._record("otel.sdk.exporter.operation.duration", seconds, (("error.type", kind),))

    def _run(self) -> None:
        """Tick until a None comes; the grid starts from the wall clock and goes on without it."""
        tick_s = time.monotonic() + until_tick_s(time.time(), self._interval_s, self._phase_s)
        while True:
            try:
                request = self._requests.get(timeout=max(0.0, tick_s - time.monotonic()))
            except Empty:
                self._collect_now()
                tick_s, missed = next_tick_s(tick_s, time.monotonic(), self._interval_s)
                with self._exporting:  # which is also what guards the stats
                    self.stats = replace(self.stats, missed=self.stats.missed + missed)
                continue
            exported = self._collect_now()
            if request is None:
                return
            request.exported = exported
            request.done.set()

    def _collect_now(self) -> bool:
        """Collect, which exports; whether nothing failed. Never raises: the thread lives on it."""
        if self._collect is None:  # no MeterProvider has registered this reader (yet)
            return False
        failures = self._failures
        try:
            self.collect(timeout_millis=self._interval_s * 1e3)
        except Exception:  # a callback or the SDK; the next collection must still come
            log.exception("%s: the collection failed", self._target)
            return False
        return self._failures <= failures


def _count(data: MetricsData) -> int:
    return sum(
        len(metric.data.data_points)
        for resource_metrics in data.resource_metrics
        for scope_metrics in resource_metrics.scope_metrics
        for metric in scope_metrics.metrics
    )
