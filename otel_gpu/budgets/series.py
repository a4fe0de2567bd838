"""So many series are collected at most, over all metrics; what goes first is fixed.

The agent's own metrics always stay. First processes go, whole, the highest pids first; then series
of owners; then whole metrics, from the largest profile and from the end of the catalog. A metric
goes for all GPUs at once: a sum over some of them would be wrong without a sign of it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from otel_gpu.budgets import processes
from otel_gpu.catalog.info import ALLOCATION
from otel_gpu.model import Kind, Metric, Profile, Reading

SERIES, PROCESSES = "series", "processes_per_gpu"

Sizes = Mapping[str, int]
"""Points by metric name, of those that the agent counts itself."""

log = logging.getLogger(__name__)


class Bounds(NamedTuple):
    """The section `budgets` of the configuration."""

    series: int = 20_000
    processes_per_gpu: int = 20


def is_own(metric: Metric) -> bool:
    """Whether a metric is about the agent, and so stands on the node's Resource."""
    return metric.name.startswith(("otel_gpu.", "otel.", "process."))


class SeriesBudget:
    """Fits the readings of a snapshot into the budgets, and counts what it leaves out.

    `dropped` holds points by budget: of each snapshot that was collected, once, however many
    readers collect it. That of processes is there once they are selected. Not thread-safe, but for
    a look at `dropped`: its user holds a lock.
    """

    def __init__(self, metrics: Sequence[Metric], bounds: Bounds) -> None:
        self.dropped = {SERIES: 0}
        self._over = False
        self.adopt(metrics, bounds)

    def adopt(self, metrics: Sequence[Metric], bounds: Bounds) -> None:
        """Bound these metrics from now on; what was counted stays."""
        self.bounds = bounds
        self.left_out: frozenset[str] = frozenset()  # metrics that are not published at all
        self._order = _order(metrics)
        self._own = {metric.name for metric in metrics if is_own(metric)}
        self._of_processes = {m.name for m in metrics if processes.is_of_processes(m)}
        if self._of_processes and PROCESSES not in self.dropped:
            self.dropped = {**self.dropped, PROCESSES: 0}
        self._histograms = sum(metric.kind is Kind.HISTOGRAM for metric in metrics)
        self._sizes: dict[str, int] = {}
        self._sized = False

    def size(self, name: str, points: int) -> None:
        """Take how many points a metric has that the agent counts itself."""
        self._sizes[name] = points

    def fit(
        self, readings: Sequence[Reading], sizes: Callable[[], Sizes], *, fresh: bool
    ) -> Sequence[Reading]:
        """Give the readings that are published, and set `left_out`.

        `sizes` is asked the first time, and when the budget is exceeded. Only what is left out of a
        `fresh` snapshot is counted.
        """
        readings, of_processes = self._largest(readings)
        total = sum(len(reading.points) for reading in readings)
        if not self._sized or total + self._supplied > self.bounds.series:
            self._sizes, self._sized = dict(sizes()), True
        over = total + self._supplied - self.bounds.series
        gone = 0
        if over > 0:
            readings, gone = self._cut(readings)
        else:
            self.left_out = frozenset()
        if fresh:
            self._count(SERIES, gone)
            self._count(PROCESSES, of_processes)
            self._tell(gone, over)
        return readings

    @property
    def _supplied(self) -> int:
        return sum(self._sizes.values()) + self._histograms

    def _largest(self, readings: Sequence[Reading]) -> tuple[Sequence[Reading], int]:
        if not self._of_processes:
            return readings, 0
        others, of_processes = self._divided(readings)
        if not of_processes:
            return readings, 0
        kept, gone = processes.largest(of_processes, self.bounds.processes_per_gpu)
        return [*others, *kept], gone

    def _divided(self, readings: Iterable[Reading]) -> tuple[list[Reading], list[Reading]]:
        """Give the readings that are not of processes, and those that are."""
        both: tuple[list[Reading], list[Reading]] = [], []
        for reading in readings:
            both[reading.metric.name in self._of_processes].append(reading)
        return both

    def _count(self, budget: str, points: int) -> None:
        if points:
            self.dropped[budget] += points

    def _cut(self, readings: Sequence[Reading]) -> tuple[Sequence[Reading], int]:
        """Leave out what is too much, and say how many points that is."""
        others, of_processes = self._divided(readings)
        counts = Counter(self._sizes)
        for reading in others:
            counts[reading.metric.name] += len(reading.points)
        room = self.bounds.series - self._histograms - sum(counts[name] for name in self._own)
        kept: set[str] = set()
        for name in self._order:
            if counts[name] > room:
                break
            room -= counts[name]
            kept.add(name)
        self.left_out = frozenset(self._order) - kept
        if self.left_out:  # then there is no place for a process either
            room = 0
        found, gone = processes.within(of_processes, room)
        gone += sum(counts[name] for name in self.left_out)
        return [one for one in others if one.metric.name not in self.left_out] + found, gone

    def _tell(self, gone: int, over: int) -> None:
        """Log a change: once when something is left out, once when all fits again."""
        if gone and not self._over:
            log.warning(
                "budgets.series: %d series are too many for %d, and %d are left out; raise it, or "
                "select fewer metrics",
                self.bounds.series + over,
                self.bounds.series,
                gone,
            )
        elif self._over and not gone:
            log.info("budgets.series: all series fit into %d again", self.bounds.series)
        self._over = gone > 0


def _order(metrics: Sequence[Metric]) -> list[str]:
    """Order the metrics that may be left out, the first to stay first."""

    def rank(metric: Metric) -> tuple[bool, Profile]:
        return metric.name == ALLOCATION.name, metric.profile

    optional = (one for one in metrics if not is_own(one) and not processes.is_of_processes(one))
    return [metric.name for metric in sorted(optional, key=rank)]
