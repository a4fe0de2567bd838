"""How a record says what to ask.

A reading is data, not a lambda, so that the docs can print it, a sweep can batch it, the support
probe can try it and the simulation can answer it. The forms:

- `call(...)`, `field(...)`: one number out of one answer (an `Ask`);
- `either(a, b)`: several paths to the same number, the first that serves wins;
- `only(test, read, why)`: a path that means what we say only on some GPUs;
- `split(key, {value: read})`: one point for each value of an attribute;
- `each(key, prefix, count, ask)`: one point for each part that the enumeration counted;
- `asking(queries, function)`: anything else, with its function beside it;
- `window(...)`: a number folded over the driver's ring buffer (its state is the ledger's);
- `described(function)`: points made from the enumerated device alone;
- `supplied(origin)`: points that the agent counts itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from otel_gpu.catalog.forms import (
    Ask,
    Asking,
    Described,
    Each,
    Either,
    Only,
    Split,
    Step,
    Supplied,
    Values,
    Window,
)
from otel_gpu.model import (
    Attributes,
    AttributeValue,
    Device,
    Missing,
    Point,
    Profile,
    Query,
    Read,
)

FIELD = "nvmlDeviceGetFieldValues"


def call(
    name: str,
    *args: int,
    path: tuple[Step, ...] = (),
    scale: float = 1,
    profile: Profile | None = None,
) -> Ask:
    """Ask a function for one number: `call("nvmlDeviceGetPowerUsage", scale=1e-3)`."""
    return Ask(query=Query(name, args), path=path, scale=scale, profile=profile)


def field(number: int, *, scope: int = 0, scale: float = 1, profile: Profile | None = None) -> Ask:
    """Ask `nvmlDeviceGetFieldValues` for one id; all fields of a sweep travel in one call."""
    return Ask(query=Query(FIELD, (number, scope)), scale=scale, profile=profile)


def either(*paths: Read) -> Either:
    """Give the first of several paths to the same number that serves."""
    return Either(paths)


def only(test: Callable[[Device], bool], path: Read, why: str) -> Only:
    """Take a path only on devices that pass a test."""
    return Only(test, path, why)


def split(key: str, branches: Mapping[AttributeValue, Read]) -> Split:
    """Give one point for each value of the attribute `key`."""
    return Split(tuple(labelled(branch, ((key, value),)) for value, branch in branches.items()))


def each(
    key: str,
    prefix: str,
    count: Callable[[Device], int],
    ask: Ask,
    most: int = 8,
    *,
    numbered: bool = False,
    profile: Profile | None = None,
) -> Each:
    """Give one point for each part: fan0, fan1, ...; its place is the question's last argument."""
    return Each(
        key=key,
        prefix=prefix,
        count=count,
        ask=ask,
        most=most,
        numbered=numbered,
        profile=profile,
    )


def asking(
    asked: tuple[Query, ...], function: Callable[[Device, Values], list[Point] | Missing]
) -> Asking:
    """Read several answers with a function of their values."""
    return Asking(asked=asked, function=function)


def window(
    name: str,
    *args: int,
    fold: Literal["max", "min"],
    scale: float = 1,
    profile: Profile | None = None,
) -> Window:
    """Fold the driver's ring buffer over the trailing window (`sampling.power_window`)."""
    return Window(query=Query(name, args), fold=fold, scale=scale, profile=profile)


def described(function: Callable[[Device], list[Point]]) -> Described:
    """Make points from the enumerated device."""
    return Described(function)


def supplied(origin: str) -> Supplied:
    """Leave the points to the agent, which has them from there."""
    return Supplied(origin)


def labelled(read: Read, attributes: Attributes) -> Read:
    """Put attributes on every path of a branch."""
    if isinstance(read, Ask):
        return replace(read, attributes=attributes + read.attributes)
    if isinstance(read, Either):
        return Either(tuple(labelled(path, attributes) for path in read.paths))
    raise TypeError(f"a branch is call(), field() or either(), not {type(read).__name__}")
