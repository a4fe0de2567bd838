"""The shapes of replies: what a reply is made of, and the ways in which most are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from otel_gpu.backends.simulation.physics import Gpu
from otel_gpu.model import Answer, Code


class Moment(NamedTuple):
    """When a question is answered: the newest tick, and when it was in Unix microseconds."""

    tick: int
    unix_us: int


Reply = Callable[[Gpu, Moment, tuple[int, ...]], Any]
"""Gives the value, or an Answer that refuses, for a question's arguments."""


def state(read: Callable[[Gpu, int], Any]) -> Reply:
    """Make a reply of what is read off the GPU at a tick."""
    return lambda gpu, moment, _: read(gpu, moment.tick)


def nothing(_: Gpu, __: Moment, ___: tuple[int, ...]) -> int:
    """Give 0: what no simulated GPU ever suffers from."""
    return 0


def chosen(values: tuple[int, ...], args: tuple[int, ...]) -> int | Answer:
    """Give the value that the one argument chooses; another argument is not valid."""
    if len(args) != 1 or not 0 <= args[0] < len(values):
        return Answer(Code.INVALID_ARGUMENT)
    return values[args[0]]


def milli(value: float) -> int:
    """Round to thousandths."""
    return round(value * 1000)
