"""The form of a verdict: a function of several answers of which any may be missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from otel_gpu.catalog.forms import UNASKED, Answers, Form, refusal
from otel_gpu.catalog.shape import number
from otel_gpu.model import AttributeValue, Code, Device, Outcome, Point, Query

LOST = frozenset({Code.GPU_IS_LOST, Code.RESET_REQUIRED})
"""What a GPU answers that needs hands or a reset; to some questions, it may still answer well."""

Known = Mapping[Query, Any]
"""The values that were answered; a question that was refused is not in it."""


def told(known: Known, query: Query, *path: str | int) -> int | float:
    """Give a number that was answered, and 0 where it was not or is none."""
    return number(known.get(query), path) or 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging(Form):
    """Judges what is known. `lost` are the points of a GPU that is lost or needs a reset.

    `seldom` are questions that cost more than the verdict is worth each time: the ledger keeps
    their answers for a minute.
    """

    asked: tuple[Query, ...]
    seldom: tuple[Query, ...] = ()
    function: Callable[[Known], list[Point]]
    lost: tuple[Point, ...] = ()

    @property
    def queries(self) -> tuple[Query, ...]:
        return self.asked + self.seldom

    def read(self, device: Device, answers: Answers) -> Outcome:
        got = {query: answers.get(query, UNASKED) for query in self.queries}
        if any(one.code in LOST for one in got.values()):
            return list(self.lost), []
        known = {query: one.value for query, one in got.items() if one.ok}
        if not known:  # a verdict on nothing would be made up
            query, answer = next(iter(got.items()))
            return [], [refusal(query, answer.code)]
        return self.function(known), []

    @property
    def source(self) -> str:
        return ", ".join(f"`{query}`" for query in self.queries)


def one_of(key: str, names: Mapping[Any, str], state: object) -> list[Point]:
    """Give a point for each state there is: 1 for the one that holds, 0 for the others.

    A state that was not known when this was written is a state of its own, by its number.
    """
    words: list[AttributeValue] = list(names.values())
    now = names.get(state, f"{state}")
    if now not in words:
        words.append(now)
    return [Point(int(word == now), ((key, word),)) for word in words]
