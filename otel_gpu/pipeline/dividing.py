"""A ResourceMetrics that is too large for one request, in two."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Any

from opentelemetry.sdk.metrics.export import Metric, ResourceMetrics, ScopeMetrics

Placed = tuple[ScopeMetrics, Metric]
"""A metric, and where it stands."""


def halves(whole: ResourceMetrics) -> tuple[ResourceMetrics, ...]:
    """Give the first and the second half of its points, in their order; () of a single point.

    It is cut between two metrics, and inside of one only where there is no other.
    """
    placed = [(scope, metric) for scope in whole.scope_metrics for metric in scope.metrics]
    if len(placed) == 1:
        (place,) = placed
        parts = [[piece] for piece in _halved(*place)]
    else:
        middle = _middle([len(metric.data.data_points) for _, metric in placed])
        parts = [placed[:middle], placed[middle:]] if placed else []
    return tuple(_with(whole, part) for part in parts)


def _halved(scope: ScopeMetrics, metric: Metric) -> Iterable[Placed]:
    data: Any = metric.data
    points = data.data_points
    middle = len(points) // 2
    for part in (points[:middle], points[middle:]) if middle else ():
        # A slice of our own rows is rows again, so that they stay fast to encode.
        yield scope, replace(metric, data=replace(data, data_points=part))


def _middle(counts: list[int]) -> int:
    """Give how many of the first belong to the first half: one at least, and not all."""
    half = sum(counts) / 2
    within = sum(total <= half for total in accumulate(counts))
    return min(max(1, within), len(counts) - 1)


def _with(whole: ResourceMetrics, placed: Iterable[Placed]) -> ResourceMetrics:
    """Give a Resource only these of its metrics."""
    by_scope = groupby(placed, key=lambda place: id(place[0]))
    groups = [list(group) for _, group in by_scope]
    scopes = [replace(group[0][0], metrics=list(map(itemgetter(1), group))) for group in groups]
    return replace(whole, scope_metrics=scopes)
