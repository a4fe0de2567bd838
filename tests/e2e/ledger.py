"""What arrived at a Collector, held against what an agent says that it queued.

A batch is known by the time of its points. The agent collects on a fixed grid of its own, so that
what was lost shows as a gap, unless the agent itself counted the tick as missed.
"""

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from otel_gpu.pipeline.cadence import phase_s

from .series import metrics_of, points_of
from .servers import JSON

ALWAYS_THERE = "otel_gpu.nvml.up"
EARLY = 0.1
"""Part of an interval that clocks may differ by; later than that is the agent's own lateness."""


@dataclass(frozen=True)
class Arrival:
    """One batch as a Collector wrote it down: when its points were read, and all of it."""

    time_ns: int
    batch: JSON


def arrivals(batches: Sequence[JSON]) -> list[Arrival]:
    """Give the batches of metrics in the order in which they came."""
    times = (
        (batch, int(points_of(metric)[0]["timeUnixNano"]))
        for batch in batches
        for metric in metrics_of(batch)
        if metric["name"] == ALWAYS_THERE
    )
    return [Arrival(time_ns, batch) for batch, time_ns in times]


@dataclass(frozen=True)
class Queued:
    """What an agent said of its queue to one target. `taken_ns` is just after it said so."""

    taken_ns: int
    batches: int
    oldest_ns: int | None
    missed: int
    dropped: int

    @classmethod
    def of(cls, stats: JSON, taken_ns: int) -> "Queued":
        """Read the agent's status."""
        backlog: dict[str, Any] = stats["backlog"]
        return cls(
            taken_ns=taken_ns,
            batches=backlog["batches"],
            oldest_ns=backlog["oldest_ns"],
            missed=stats["missed"],
            dropped=sum(backlog["dropped"].values()),
        )


@dataclass(frozen=True)
class Account:
    """All about one target. `ends_ns` are when the agent was killed, and when it was stopped last;
    `queued` is what it said of its queue, at least once near the end of each of its lives.
    """

    arrived: Sequence[Arrival]
    ends_ns: Sequence[int]
    queued: Sequence[Queued]
    interval_s: float
    node: str

    @cached_property
    def first(self) -> dict[int, Arrival]:
        """Each batch as it came first, in the order in which they came."""
        found: dict[int, Arrival] = {}
        for one in self.arrived:
            found.setdefault(one.time_ns, one)
        return found

    @property
    def duplicates(self) -> int:
        """Batches that came again."""
        return len(self.arrived) - len(self.first)

    @property
    def altered(self) -> list[int]:
        """The times of batches that came again, and not as they came before."""
        return [one.time_ns for one in self.arrived if one != self.first[one.time_ns]]

    @property
    def in_order(self) -> bool:
        """Whether the oldest always came first."""
        return list(self.first) == sorted(self.first)

    @property
    def dropped(self) -> int:
        """Points that the agent says it dropped, in all its lives."""
        return sum(self._last_said(life).dropped for life in range(len(self.ends_ns)))

    def lost(self, life: int) -> int:
        """Batches that were queued in a life, or waited in it, and never came."""
        short = [self._short(said) for said in self.queued if self._life(said.taken_ns) == life]
        return max(short) + self._gaps(life)

    def waiting(self, life: int) -> int:
        """Count the batches that waited at the end of a life."""
        return self._last_said(life).batches

    def ticks(self, life: int) -> list[int]:
        """Give when the batches of a life were collected that came, oldest first."""
        return sorted(time_ns for time_ns in self.first if self._life(time_ns) == life)

    def _short(self, said: Queued) -> int:
        """Count what waited at a moment and did not come."""
        if said.oldest_ns is None:
            return 0
        # The queue keeps when a collection was done, the points say when it began.
        oldest_ns = said.oldest_ns - self.interval_s * 0.5e9
        came = sum(oldest_ns <= time_ns <= said.taken_ns for time_ns in self.first)
        return max(0, said.batches - came)

    def _gaps(self, life: int) -> int:
        """Count the ticks between a life's first and last batch that nobody accounts for."""
        ticks = self.ticks(life)
        if not ticks:
            return 0
        span = self._place(ticks[-1]) - self._place(ticks[0]) + 1
        return max(0, span - len(ticks) - self._last_said(life).missed)

    def _place(self, time_ns: int) -> int:
        """Give which tick of the node's grid a collection is of."""
        phase = phase_s(self.node, self.interval_s)
        return int((time_ns / 1e9 - phase) / self.interval_s + EARLY)

    def _life(self, time_ns: int) -> int:
        return bisect(self.ends_ns, time_ns)

    def _last_said(self, life: int) -> Queued:
        return [said for said in self.queued if self._life(said.taken_ns) == life][-1]
