"""Totals as growth: `temporality: delta` of one target.

Observable counters are read as totals. What a target is sent instead is how much each grew since
the same target's last collection.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, NamedTuple

from opentelemetry.sdk.metrics.export import AggregationTemporality, Metric, MetricsData, Sum

from otel_gpu.model import Series
from otel_gpu.points import Number, Points

PATIENCE = 20
"""Collections for which a series that vanished is remembered: a GPU that hangs for a moment, or a
driver that is restarted, does not lose what was counted meanwhile."""


IDENTITY = "deltas.identity"
"""Where a series' memo keeps what tells it from others of its metric."""


class Total(NamedTuple):
    """What a series was at the last collection that had it; times are Unix nanoseconds."""

    value: Number
    start_ns: int | None
    time_ns: int
    turn: int


class Deltas:
    """What one target was last sent the growth up to."""

    def __init__(self) -> None:
        self._totals: dict[Hashable, Total] = {}
        self._turn = 0
        self._last_ns: int | None = None
        self._now_ns: int | None = None

    def convert(self, data: MetricsData) -> MetricsData:
        """Give the same with the growth of every counter; what may fall stays a total."""
        self._turn += 1
        resources = []
        for resource in data.resource_metrics:
            scopes = [
                replace(
                    scope, metrics=[self._converted(scope.scope.name, one) for one in scope.metrics]
                )
                for scope in resource.scope_metrics
            ]
            full = [replace(one, metrics=list(filter(_has_points, one.metrics))) for one in scopes]
            resources.append(replace(resource, scope_metrics=[one for one in full if one.metrics]))
        self._forget()
        self._last_ns = self._now_ns
        return replace(data, resource_metrics=[one for one in resources if one.scope_metrics])

    def _converted(self, scope: str, metric: Metric) -> Metric:
        data: Any = metric.data
        if not _is_total(data):
            return metric
        points: Points = data.data_points
        values, kept, starts = [], [], []
        for value, series in zip(points.values, points.series, strict=True):
            key = (scope, metric.name, series.resource, identity(series))
            grown = self._grown(key, series.start_ns, value, points.time_ns)
            if grown is not None:
                values.append(grown[0])
                kept.append(series)
                starts.append(grown[1])
        growth = Points(values, kept, points.time_ns, started=True, starts=starts)
        self._now_ns = points.time_ns
        return replace(metric, data=Sum(growth, AggregationTemporality.DELTA, is_monotonic=True))

    def _grown(
        self, key: Hashable, start_ns: int | None, value: Number, time_ns: int
    ) -> tuple[Number, int] | None:
        """Give by how much a series grew, and since when; None where that is not known."""
        before = self._totals.get(key)
        self._totals[key] = Total(value, start_ns, time_ns, self._turn)
        since_ns = before.time_ns if before else self._last_ns
        if since_ns is None:
            return None
        since_ns = min(since_ns, time_ns)  # the clock may have been set back
        if before and start_ns in {None, before.start_ns} and value >= before.value:
            return value - before.value, since_ns
        began_ns = min(start_ns or 0, time_ns)
        if before or began_ns > since_ns:
            # A reset, or a series that began after the last collection: all of it is new.
            return value, max(began_ns, since_ns)
        return None

    def _forget(self) -> None:
        oldest = self._turn - PATIENCE
        gone = [key for key, total in self._totals.items() if total.turn < oldest]
        for key in gone:
            del self._totals[key]


def identity(series: Series) -> str:
    """Give the attributes as text, which tells 1 from True; its memo keeps it."""
    text: str | None = series.memo.get(IDENTITY)
    if text is None:
        text = series.memo[IDENTITY] = repr(sorted(series.attributes.items()))
    return text


def _is_total(data: Any) -> bool:
    """Whether this is a counter that our provider collected."""
    return (
        isinstance(data, Sum)
        and data.is_monotonic
        and data.aggregation_temporality is AggregationTemporality.CUMULATIVE
        and isinstance(data.data_points, Points)
    )


def _has_points(metric: Metric) -> bool:
    return len(metric.data.data_points) > 0
