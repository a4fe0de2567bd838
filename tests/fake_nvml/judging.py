"""Compares what was published with what was planted: one complaint for each thing that is off."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from otel_gpu.catalog.forms import Described, Supplied
from otel_gpu.model import Attributes, Metric, Point, Query
from tests.fake_nvml.facts import (
    BLACKWELL,
    HOPPER,
    INTEGRALS,
    SILENT,
    SLICE,
    SOURCES,
    VOLTA,
    Source,
    Thing,
    Words,
)
from tests.fake_nvml.planting import UUIDS
from tests.fake_nvml.rounds import Round, knows
from tests.fake_nvml.told import Range
from tests.fake_nvml.units import INTEGRATED, UNITS

ADD = "say in tests/fake_nvml/facts.py, or in topics/, what nvml.h says of it"

Values = Mapping[Words, Sequence[float | Range]]
"""By the words of a point's attributes: what it may be, of which one is enough."""

IDENTITY: Mapping[str, Mapping[str, str | int]] = {
    HOPPER: {
        "hw.vendor": "NVIDIA",
        "hw.model": "NVIDIA H200",
        "hw.serial_number": "1652023",
        "hw.driver_version": "580.159.04",
        "hw.bios_version": "96.00.A5.00.1A",
        "hw.firmware_version": "580.159.05",
        "nvidia.gpu.index": 0,
        "nvidia.gpu.pci.address": "0000:3b:00.0",
        "nvidia.gpu.architecture": "Hopper",
        "nvidia.gpu.compute_capability": "9.0",
        "nvidia.gpu.board.part_number": "692-2G520-0282-001",
    },
    VOLTA: {
        "hw.vendor": "NVIDIA",
        "hw.model": "Tesla V100",
        "hw.serial_number": "0320718",
        "hw.driver_version": "580.159.04",
        "hw.bios_version": "88.00.4F.00.09",
        "nvidia.gpu.index": 1,
        "nvidia.gpu.pci.address": "0000:3c:00.0",
        "nvidia.gpu.architecture": "Volta",
        "nvidia.gpu.compute_capability": "7.0",
        "nvidia.gpu.board.part_number": "900-2G503-0000-000",
    },
    BLACKWELL: {
        "hw.vendor": "NVIDIA",
        "hw.model": "NVIDIA GB200",
        "hw.driver_version": "580.159.04",
        "nvidia.gpu.index": 2,
        "nvidia.gpu.pci.address": "0000:3d:00.0",
        "nvidia.gpu.architecture": "Blackwell",
        "nvidia.gpu.compute_capability": "10.0",
    },
    SLICE: {
        "hw.vendor": "NVIDIA",
        "hw.model": "NVIDIA H200",
        "hw.driver_version": "580.159.04",
        "nvidia.gpu.index": 0,
        "nvidia.gpu.pci.address": "0000:3b:00.0",
        "nvidia.gpu.architecture": "Hopper",
        "nvidia.gpu.compute_capability": "9.0",
    },
}
"""What the info series says of each board that `planting.py` puts in."""


def asking(metrics: Sequence[Metric]) -> tuple[Metric, ...]:
    """Leave out what the agent counts itself."""
    return tuple(metric for metric in metrics if not isinstance(metric.read, Supplied))


def complaints(metric: Metric, rounds: Sequence[Round]) -> list[str]:
    """Say what is not as it was planted, round by round and board by board."""
    if isinstance(metric.read, Described):
        judge = identity_complaints
    elif nameless(metric, rounds):
        return [f"{metric.name}: nobody knows what this is; {ADD}"]
    else:
        judge = value_complaints
    return [
        f"round {number}, {board}: {metric.name} {complaint}"
        for number, one in enumerate(rounds)
        for board in one.told
        if metric.on_instance or board != SLICE
        for complaint in judge(metric, board, one)
    ]


def nameless(metric: Metric, rounds: Sequence[Round]) -> bool:
    """Whether neither the facts nor the topics know anything by the words of a metric's name."""
    name = name_of(metric)
    known = {source.thing.name for source in SOURCES}
    return name not in known and all((x, name) not in r.points_made for r in rounds for x in UUIDS)


def identity_complaints(metric: Metric, board: str, one: Round) -> Iterator[str]:
    """Compare what is said of a board's identity with what it is."""
    for point in published(metric, board, one):
        if point.value != 1 or dict(point.attributes) != IDENTITY[board]:
            yield f"is {point}, and the board is {IDENTITY[board]}"


def value_complaints(metric: Metric, board: str, one: Round) -> Iterator[str]:
    """Compare the points of a metric on a board with what they should be."""
    expected, found = values(metric, board, one), shown(metric, board, one)
    for words in expected.keys() - found.keys():
        if any(not isinstance(value, Range) for value in expected[words]):
            yield f"{sorted(words)} is missing: {reasons(metric, board, one)}"
    for words, value in found.items():
        if not any(fits(value, one) for one in expected.get(words, ())):
            yield f"{sorted(words)} shows {value!r}; NVML said {[*expected.get(words, ())]}"
    for source in one.sources.get((board, name_of(metric)), ()):
        if not convertible(source, metric):
            yield f"is in {metric.unit}; {source}, which it is named after, is in {source.unit}"


def values(metric: Metric, board: str, one: Round) -> Values:
    """Give what the points of a metric may be, by what was offered."""
    told, here = one.told[board], (board, name_of(metric))
    expected: dict[Words, list[float | Range]] = defaultdict(list)
    for source in one.sources.get(here, ()):
        expected[source.thing.attributes].append(exact(source, told.raw[source]))
    for made in one.points_made.get(here, ()):
        value = made.value(told)
        if value is not None:
            expected[made.thing.attributes].append(value)
    return expected


def published(metric: Metric, board: str, one: Round) -> Sequence[Point]:
    """Give the points of a metric on a board."""
    return one.published.get((UUIDS[board], metric.name), ())


def shown(metric: Metric, board: str, one: Round) -> Mapping[Words, float]:
    """Give the values of a metric on a board, by the words of their attributes."""
    return {words_of(point.attributes): point.value for point in published(metric, board, one)}


def reasons(metric: Metric, board: str, one: Round) -> list[str]:
    """Find why points of a metric are not there."""
    here = (metric.name, UUIDS[board])
    return [x.missing.detail for x in one.snapshot.gaps if (x.metric, x.device) == here]


def untold(metric: Metric, rounds: Sequence[Round]) -> list[str]:
    """Name the questions of a metric whose answer was never seen in a point, in any round."""
    told = {query for one in rounds for board in one.told for query in seen(metric, board, one)}
    missed = [query for query in metric.read.queries if query not in told and knows(query)]
    return [f"{metric.name} asks {query}, and shows it nowhere; {ADD}" for query in missed]


def seen(metric: Metric, board: str, one: Round) -> Iterator[Query]:
    """Give the questions whose answers a metric showed on a board in a round."""
    told, found, here = one.told[board], shown(metric, board, one), (board, name_of(metric))
    for source in one.sources.get(here, ()):
        if found.get(source.thing.attributes) == exact(source, told.raw[source]):
            yield source.query
    for made in one.points_made.get(here, ()):
        if made.thing.attributes in found:
            yield from made.queries & told.offered


def spans(board: str, rounds: Sequence[Round]) -> Iterator[dict[str, float]]:
    """Give, round by round, how many seconds each integral of GPM must have grown for.

    All of them are read in one call, so the seconds of a round are the same for all.
    """
    before: dict[Thing, float] = defaultdict(float)
    for one in rounds:
        grown = {}
        for source in INTEGRALS:
            raw = one.told[board].raw.get(gpm(source))
            value = integral(source, board, one)
            if raw and value is not None:
                rate = raw * UNITS[source.unit].factor
                grown[str(source.thing)] = (value - before[source.thing]) / float(rate)
            before[source.thing] = value or 0.0
        yield grown


def gpm(integral: Source) -> Source:
    """Find the metric of which an integral is made."""
    return next(source for source in SOURCES if source.query == integral.query)


def integral(source: Source, board: str, one: Round) -> float | None:
    """Find the point of an integral."""
    for reading in one.snapshot.readings:
        if reading.device == UUIDS[board] and name_of(reading.metric) == source.thing.name:
            assert reading.metric.unit == INTEGRATED[source.unit]
            return shown(reading.metric, board, one).get(source.thing.attributes)
    return None


def name_of(metric: Metric) -> Words:
    """Give the words of a metric's name."""
    return frozenset(metric.name.split(".")) - SILENT


def words_of(attributes: Attributes) -> Words:
    """Give the words of a point's attributes."""
    return frozenset(str(value) for _, value in attributes) - SILENT


def fits(value: float, expected: float | Range) -> bool:
    """Whether a value is what it should be."""
    if isinstance(expected, Range):
        return expected.low <= value <= expected.high
    return value == expected


def convertible(source: Source, metric: Metric) -> bool:
    """Whether the unit of a source leads to the unit of a metric."""
    ucum = UNITS[source.unit].ucum
    return metric.unit == ucum or (ucum == "{}" and metric.unit.startswith("{"))


def exact(source: Source, raw: int | Fraction) -> float:
    """Give the double nearest to the true value in the base unit."""
    return float(raw * UNITS[source.unit].factor)
