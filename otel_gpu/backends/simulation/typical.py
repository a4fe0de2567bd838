"""Answers to what nobody modelled: any question of the catalog, inside its record's typical range.

So a metric that is added to the catalog tomorrow is simulated tomorrow. Gauges wander, counters
grow, static values stand; each GPU has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil, floor, sin, tau
from typing import Any, NamedTuple

from otel_gpu.backends.simulation.chance import Chance
from otel_gpu.catalog.forms import Ask, Each, Either, Only, Split, Step
from otel_gpu.model import Device, Kind, Metric, Query, Read, Tier

FUZZ = 1e-9  # a quotient this far outside its range is inside


class Place(NamedTuple):
    """A number that a metric reads out of an answer, and on which devices it is there."""

    metric: Metric
    ask: Ask
    present: Callable[[Device], bool]


class Elapsed(NamedTuple):
    """How long: the seconds of the simulation, and those since the driver was loaded."""

    running_s: float
    loaded_s: float


Index = Mapping[Query, Sequence[Place]]


def index(catalog: Iterable[Metric]) -> Index:
    """Find once, for each question, all numbers that the catalog reads out of its answer."""
    found: dict[Query, list[Place]] = {}
    for metric in catalog:
        for ask, present in asks(metric.read):
            found.setdefault(ask.query, []).append(Place(metric, ask, present))
    return found


def asks(read: Read) -> Iterator[tuple[Ask, Callable[[Device], bool]]]:
    """Find the numbers that a reading asks for. `asking()` hides them in a function: none."""
    if isinstance(read, Ask):
        yield read, always
    elif isinstance(read, Each):
        yield from each_part(read)
    else:
        for branch in branches(read):
            yield from asks(branch)


def branches(read: Read) -> tuple[Read, ...]:
    """Give the readings that a reading is made of."""
    if isinstance(read, Either):
        return read.paths
    if isinstance(read, Split):
        return read.branches
    return (read.path,) if isinstance(read, Only) else ()


def each_part(read: Each) -> Iterator[tuple[Ask, Callable[[Device], bool]]]:
    """Give one number for each part, on devices that have so many."""
    for place, query in enumerate(read.queries):
        yield replace(read.ask, query=query), counted(read, place)


def counted(read: Each, place: int) -> Callable[[Device], bool]:
    """Make the test of whether a device has a part at this place."""
    return lambda device: place < read.count(device)


def always(_: Device) -> bool:
    """Say that every device has it."""
    return True


def answer(places: Sequence[Place], device: Device, chance: Chance, elapsed: Elapsed) -> Any:
    """Make the answer to one question: every number in its place. None: this device has none."""
    root: Any = None
    for metric, ask, present in places:
        if present(device) and (metric.on_instance or not device.is_instance):
            name = chance.part(ask.query, *ask.path)
            root = put(root, ask.path, raw(metric, ask.scale, name, elapsed))
    return root


def raw(metric: Metric, scale: float, chance: Chance, elapsed: Elapsed) -> int | float:
    """Give a value as NVML would: what the record's scale brings into its typical range."""
    low, high = (unscaled(edge, scale) for edge in metric.typical)
    whole = metric.integer or scale != 1 or high - low >= 2
    if metric.kind is Kind.COUNTER:
        grown = chance.between(low, high, "growth") * (elapsed.loaded_s + elapsed.running_s)
        return int(grown) if whole else grown
    part = chance.unit("fixed") if metric.tier is Tier.STATIC else wander(chance, elapsed.running_s)
    return within(low, high, part) if whole else low + part * (high - low)


def within(low: float, high: float, part: float) -> int | float:
    """Choose a whole number between two edges, each equally near; without one, the low edge."""
    least, most = ceil(low - FUZZ * abs(low)), floor(high + FUZZ * abs(high))
    return min(most, least + int(part * (most - least + 1))) if least <= most else low


def wander(chance: Chance, seconds: float) -> float:
    """Move slowly between 0 and 1."""
    slow, quick = chance.between(300, 900, "slow"), chance.between(20, 90, "quick")
    swing = 0.3 * sin(tau * (seconds / slow + chance.unit("slow phase")))
    return 0.5 + swing + 0.2 * sin(tau * (seconds / quick + chance.unit("quick phase")))


def unscaled(value: float, scale: float) -> float:
    """Undo `catalog.forms.scaled`."""
    return value / scale if scale >= 1 else value * round(1 / scale)


def put(node: Any, path: Sequence[Step], value: float) -> Any:
    """Set a number at a path, making the structs and lists that lead there."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        places = list(node) if isinstance(node, list) else []
        places += [0] * (step + 1 - len(places))
        places[step] = put(places[step], rest, value)
        return places
    members = dict(node) if isinstance(node, dict) else {}
    members[step] = put(members.get(step), rest, value)
    return members
