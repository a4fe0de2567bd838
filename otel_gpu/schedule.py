"""Which metrics are due at a moment. Pure but for the slots it has given out.

Every period has slots at whole multiples of itself since the start, so that slower tiers fall on
ticks of the faster ones and a sweep that took long does not shift the next.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

from otel_gpu.model import Metric
from otel_gpu.sweep import Intervals

SOON_S = 5.0
"""What comes within so long is not worth a read out of turn."""


class Schedule:
    """Periods in seconds and their metrics, from a monotonic start."""

    def __init__(self, metrics: Iterable[Metric], every: Intervals, start_s: float) -> None:
        self._groups = grouped(metrics, every)
        self._start_s = start_s
        self._given = dict.fromkeys(self._groups, -1)

    def adopt(
        self, metrics: Iterable[Metric], every: Intervals, now_s: float
    ) -> tuple[Metric, ...]:
        """Follow another selection in the same slots; give what is new and would wait long.

        Periods that go on keep their beat: what is a mean between two reads must not be read again
        at once.
        """
        known = {metric.name for group in self._groups.values() for metric in group}
        given, self._groups = self._given, grouped(metrics, every)
        self._given = {
            period: given.get(period, self._slot(period, now_s) - 1) for period in self._groups
        }
        return tuple(
            metric
            for period, group in self._groups.items()
            for metric in group
            if metric.name not in known and period > SOON_S and period in given
        )

    def due(self, now_s: float) -> tuple[tuple[Metric, ...], int]:
        """Give the metrics whose slot has come, and how many slots were missed since the last."""
        due: list[Metric] = []
        missed = 0
        for period, group in self._groups.items():
            slot = self._slot(period, now_s)
            if slot > self._given[period]:
                due += group
                missed += slot - self._given[period] - 1
                self._given[period] = slot
        return tuple(due), missed

    def next_s(self) -> float:
        """Give the monotonic second of the next slot of any period; infinite if there is none."""
        return min(
            (self._start_s + (slot + 1) * period for period, slot in self._given.items()),
            default=math.inf,
        )

    def _slot(self, period: float, now_s: float) -> int:
        # A wake-up may come a hair before its slot by rounding; it is that slot all the same.
        return math.floor((now_s - self._start_s) / period + 1e-6)


def grouped(metrics: Iterable[Metric], every: Intervals) -> dict[float, tuple[Metric, ...]]:
    """Give the metrics of each period."""
    groups: dict[float, list[Metric]] = defaultdict(list)
    for metric in metrics:
        if metric.name in every:
            groups[every[metric.name]].append(metric)
    return {period: tuple(group) for period, group in groups.items()}
