"""What a board was told to say in a round, and the points that must come of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from otel_gpu.model import Query
from tests.fake_nvml.facts import GPUS, Thing
from tests.fake_nvml.machine import Values
from tests.fake_nvml.planting import Raw


@dataclass(frozen=True)
class Told:
    """What one board was told to say in a round; the rest is refused."""

    board: str
    turn: int
    raw: Raw
    offered: frozenset[Query]

    def value(self, query: Query, member: str | int | None = None) -> int:
        """Give one number that is offered, and 0 where it is not."""
        found = [raw for one, raw in self.raw.items() if (one.query, one.member) == (query, member)]
        return int(found[0]) if found else 0


@dataclass(frozen=True)
class Range:
    """A value that cannot be told exactly; it may be there or not."""

    low: float
    high: float


@dataclass(frozen=True)
class Made:
    """A point and the questions behind it; the value is None where it cannot be known."""

    thing: Thing
    queries: frozenset[Query]
    value: Callable[[Told], float | Range | None]


Lines = Mapping[str, Values]
Topic = Callable[[str, int], tuple[Lines, Sequence[Made]]]


def made(of: str, value: float, *queries: Query) -> Made:
    """Describe a point that is there when all of its questions are answered."""
    needed = frozenset(queries)
    return Made(Thing.of(of), needed, lambda told: value if needed <= told.offered else None)


def states(of: str, names: Iterable[str], now: str, *queries: Query) -> list[Made]:
    """Describe a point for each state, of which one is 1."""
    return [made(f"{of} | {name}", int(name == now), *queries) for name in names]


def on_gpus(topic: Topic) -> Topic:
    """Say that an instance has nothing of this."""
    return lambda board, turn: topic(board, turn) if board in GPUS else ({}, ())
