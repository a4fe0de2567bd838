"""What an answer must be made of: numbers, and lists of structs, taken out of it or refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from otel_gpu.catalog.ranges import SENTINELS, TOO_LARGE
from otel_gpu.model import Query

NUMBERS = frozenset({int, float})  # and not bool, which is an int to isinstance


class Misshapen(Exception):  # noqa: N818 - it ends in `asking()`, as a gap, and is no error of ours
    """An answer is not what its question should give; `query` says which."""

    def __init__(self, query: Query) -> None:
        super().__init__(str(query))
        self.query = query


def number(value: Any, path: Sequence[str | int]) -> int | float | None:
    """Follow a path into an answer; None where it leads to no number, or to NVML's sentinels."""
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return figure(value)


def figure(value: Any) -> int | float | None:
    """Give a value that is a number; None for what is none, and for NVML's sentinels."""
    if type(value) not in NUMBERS:
        return None
    return value if -TOO_LARGE < value < TOO_LARGE and value not in SENTINELS else None


def scaled(value: float, scale: float) -> int | float:
    """Bring a raw value to base units. A scale under 1 divides, so that 57 % is 0.57 exactly."""
    if scale == 1:
        return value
    return value * scale if scale > 1 else value / round(1 / scale)


def whole(values: Mapping[Query, Any], query: Query, *path: str | int) -> int:
    """Take a whole number out of an answer. Raises Misshapen where there is none."""
    found = number(values[query], path)
    if not isinstance(found, int):
        raise Misshapen(query)
    return found


def entries(values: Mapping[Query, Any], query: Query) -> Sequence[Any]:
    """Take an answer that is a list. Raises Misshapen when it is none."""
    found = values[query]
    if not isinstance(found, list | tuple):
        raise Misshapen(query)
    return found


def structs(
    values: Mapping[Query, Any], query: Query, *members: str
) -> Sequence[Mapping[str, Any]]:
    """Take a list of structs, each with these whole numbers in it. Raises Misshapen otherwise."""
    found = entries(values, query)
    for place in range(len(found)):
        for member in members:
            whole(values, query, place, member)
    return found
