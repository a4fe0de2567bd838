"""Plants numbers in NVML's answers for every reading of a catalog, and says what must come out.

Made from the records, so a metric of tomorrow is tested tomorrow. Each number is odd and there is
only one of it: what is read from the wrong place, or scaled twice, is not what was planted.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from typing import Any

from otel_gpu.catalog.forms import Ask, Each, Either, Only, Split, Step
from otel_gpu.catalog.links import ByGeneration
from otel_gpu.catalog.profiling import CALL as GPM
from otel_gpu.catalog.ranges import bounds
from otel_gpu.model import Answer, Attributes, Code, Device, Metric, Query, Read

Place = tuple[Query, tuple[Step, ...]]


@dataclass(frozen=True)
class Seed:
    """One number that a metric reads on a device, and the largest raw value that it may have."""

    metric: Metric
    ask: Ask
    most: int

    @property
    def place(self) -> Place:
        return self.ask.query, self.ask.path


def seeds(catalog: Iterable[Metric], device: Device) -> list[Seed]:
    """Find every number that the catalog may read on a device, each path of `either()` too."""
    found = []
    for metric in catalog:
        if metric.on_instance or not device.is_instance:
            _, high = bounds(metric)
            for ask in asks(metric.read, device):
                scale = Fraction(str(ask.scale))
                found.append(Seed(metric, ask, int(min(high, 2**62) / scale)))
    return found


def asks(read: Read, device: Device) -> Iterator[Ask]:
    """Give the numbers of a reading; those of `asking()` are behind a function, and not here."""
    if isinstance(read, Ask):
        yield read
    elif isinstance(read, Each):
        for place, query in enumerate(read.wanted(device, lambda _: False)):
            attributes: Attributes = ((read.key, f"{read.prefix}{place}"),)
            yield replace(read.ask, query=query, attributes=attributes)
    elif isinstance(read, Only):
        yield from asks(read.path, device) if read.test(device) else ()
    elif isinstance(read, ByGeneration):
        yield from asks(read.newer if read.is_newer(device) else read.older, device)
    else:
        for branch in branches(read):
            yield from asks(branch, device)


def branches(read: Read) -> tuple[Read, ...]:
    """Give the readings that a reading is made of."""
    if isinstance(read, Either):
        return read.paths
    return read.branches if isinstance(read, Split) else ()


def planted(found: Sequence[Seed]) -> dict[Place, int]:
    """Give each place an odd number of its own, small enough for all who read it.

    What may only be 0 or 1 is 1, which is not its own.
    """
    most: dict[Place, int] = {}
    for seed in found:
        most[seed.place] = min(seed.most, most.get(seed.place, seed.most))
    numbers = count(3, 2)
    flags = {place: 1 for place in most if most[place] == 1}
    rest = sorted(most.keys() - flags.keys(), key=lambda place: (most[place], str(place)))
    raw = flags | {place: next(numbers) for place in rest}
    assert all(raw[place] <= most[place] for place in raw), "there are not enough odd numbers"
    return raw


def answers(raw: dict[Place, int]) -> dict[Query, Answer]:
    """Put the numbers into answers of NVML's shapes."""
    values: dict[Query, Any] = {}
    for (query, path), number in raw.items():
        values[query] = put(values.get(query), path, number)
        if query.call == GPM:
            values[query] = [number, 0.0, 1.0]  # over a second
    return {query: Answer(Code.SUCCESS, value) for query, value in values.items()}


def put(node: Any, path: tuple[Step, ...], number: int) -> Any:
    """Set a number at a path, making the structs and the lists that lead there."""
    if not path:
        return number
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        return {**(node or {}), step: put((node or {}).get(step), rest, number)}
    places = list(node or []) + [None] * (step + 1 - len(node or []))
    places[step] = put(places[step], rest, number)
    return places


def exact(raw: int, scale: float) -> float:
    """Give the double nearest to the true value in base units."""
    return float(Fraction(raw) * Fraction(str(scale)))
