"""When something goes wrong, and when nothing does: a seeded timetable that every process can make.

The box in the worker, the receivers and the clients each follow their own part of it. A worker
that is replaced goes on where the old one was, because nothing depends on what was asked before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

CALM_S = 30.0
"""A calm: no fault, no stray client, receivers that take everything."""

SETTLE_S = 18.0
"""How much of a calm passes until it is measured: queues empty, connections end, GPUs return."""

LEAST_WARM_S, MOST_WARM_S = 45.0, 600.0
"""In ten minutes the C library's heap has found its size. Runs of minutes cannot wait for that."""

STORM_S = 270.0  # between two calms


class Window(NamedTuple):
    """Something that goes wrong from `since_s` to before `until_s`; `chance` (0 to 1) is its own.

    Seconds count from the beginning of the run. Until `felt_s` the agent's readings show it.
    """

    kind: str
    since_s: float
    until_s: float
    felt_s: float
    chance: float


class Habit(NamedTuple):
    """How often a kind comes, from the end of one to the next on average, and how long it lasts.

    `after_s`: how long it is felt beyond that.
    """

    every_s: float
    shortest_s: float
    longest_s: float
    after_s: float = 0.0


@dataclass(frozen=True)
class Timeline:
    """A run of so many seconds: warm-up, then calms with storms between them; it ends in a calm."""

    seconds: float

    @property
    def warm_s(self) -> float:
        """When the warm-up ends and the first calm begins."""
        return min(max(0.3 * self.seconds, LEAST_WARM_S), MOST_WARM_S)

    @property
    def settled(self) -> bool:
        """Whether the warm-up was long enough for memory to stay as it is after it."""
        return self.warm_s >= MOST_WARM_S

    @property
    def calms_s(self) -> list[float]:
        """When each calm begins: at least two, with a storm between them."""
        last_s = self.seconds - CALM_S
        storms = max(1, round((last_s - self.warm_s) / (CALM_S + STORM_S)))
        step_s = (last_s - self.warm_s) / storms
        return [self.warm_s + place * step_s for place in range(storms + 1)]

    def calm(self, now_s: float) -> bool:
        """Whether it is calm."""
        return any(begin_s <= now_s < begin_s + CALM_S for begin_s in self.calms_s)

    def disturbs(self, window: Window) -> bool:
        """Whether a window reaches into a calm, or is felt when that is measured."""
        gone_s = max(window.until_s, window.felt_s - SETTLE_S)
        return any(
            window.since_s < begin_s + CALM_S and gone_s > begin_s for begin_s in self.calms_s
        )


class Storm:
    """What is wrong at a moment. Each kind of `habits` comes and goes by itself."""

    def __init__(self, seed: object, habits: Mapping[str, Habit], timeline: Timeline) -> None:
        self._timeline = timeline
        self._streams = [stream(seed, kind, habit) for kind, habit in habits.items()]
        self._next = [next(each) for each in self._streams]

    def at(self, now_s: float) -> list[Window]:
        """Give the windows that are open; `now_s` never goes back."""
        for place, each in enumerate(self._streams):
            while self._next[place].until_s <= now_s:
                self._next[place] = next(each)
        return [
            window
            for window in self._next
            if window.since_s <= now_s and not self._timeline.disturbs(window)
        ]


def stream(seed: object, kind: str, habit: Habit) -> Iterator[Window]:
    """Give the windows of a kind, for ever; the first comes within one usual gap."""
    random = Random(f"{seed}/{kind}")  # noqa: S311 - a timetable, not a secret
    now_s = habit.every_s * random.random()
    while True:
        until_s = now_s + random.uniform(habit.shortest_s, habit.longest_s)
        yield Window(kind, now_s, until_s, until_s + habit.after_s, random.random())
        now_s = until_s + habit.every_s * random.uniform(0.5, 1.5)
