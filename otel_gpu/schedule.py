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


class Schedule:
    """Periods in seconds and their metrics, from a monotonic start."""

    def __init__(self, metrics: Iterable[Metric], every: Intervals, start_s: float) -> None:
        groups: dict[float, list[Metric]] = defaultdict(list)
        for metric in metrics:
            if metric.name in every:
                groups[every[metric.name]].append(metric)
        self._groups = {period: tuple(group) for period, group in groups.items()}
        self._start_s = start_s
        self._given = dict.fromkeys(self._groups, -1)

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
