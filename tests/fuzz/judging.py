"""What must hold of everything that is published, whatever the driver said."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from otel_gpu.catalog.info import FACTS
from otel_gpu.model import (
    Attributes,
    Device,
    Gap,
    Kind,
    Metric,
    Point,
    Reading,
    Reason,
    Snapshot,
)
from otel_gpu.sweep import applicable

RANGES: Mapping[str, tuple[float, float]] = {
    "1": (0, 1),
    "Cel": (-50, 200),
    "W": (0, 20_000),
    "Hz": (0, 1e11),
    "By": (0, 2**50),
    "By/s": (0, 1e13),
    "{pstate}": (0, 15),
    "J": (0, 1e15),
    "s": (0, 1e11),
    "rpm": (0, 1e5),
}
"""By unit; what is not here is a count. Written out once more, as the users know them."""

COUNT = (0, 2**63 - 1)
WITHOUT_PROCESSES = frozenset({"nvidia.gpu.process.memory.usage", "nvidia.gpu.process.utilization"})
"""Where nothing runs there is nothing to be read, and nothing is missing."""

FREE = frozenset({"nvidia.gpu.info"})

Series = tuple[str, str, Attributes]


def range_of(metric: Metric) -> tuple[float, float]:
    """Give the closed range of a metric's values."""
    if metric.name == "hw.fan.speed_ratio":
        return (0, 2)
    if metric.kind is Kind.COUNTER and metric.unit == "By":
        return COUNT
    return RANGES.get(metric.unit, COUNT)


@dataclass(slots=True)
class Judge:
    """Compares each snapshot with what went before it; one complaint for each thing that is off."""

    metrics: tuple[Metric, ...]
    counts: dict[Series, Point] = field(default_factory=dict)
    times: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)  # GPUs of which everything was asked once

    def complaints(self, snapshot: Snapshot, answered: set[str], *, anew: bool) -> list[str]:
        """Judge a snapshot; `answered` are the GPUs that were, `anew` after an enumeration."""
        self._forget(snapshot)
        self.whole |= answered if anew else set()
        found = [line for one in snapshot.readings for line in self._of_reading(one)]
        found += [line for gap in snapshot.gaps for line in of_gap(gap)]
        outcomes = {(one.metric.name, one.device) for one in snapshot.readings if one.points}
        outcomes |= {(gap.metric, gap.device) for gap in snapshot.gaps}
        for uuid in answered & self.whole:
            found += self._unspoken(snapshot.devices[uuid], outcomes)
        return found

    def _forget(self, snapshot: Snapshot) -> None:
        """An instance that was removed, and made again, counts anew."""
        self.whole &= snapshot.devices.keys()
        self.counts = {at: one for at, one in self.counts.items() if at[1] in snapshot.devices}
        self.times = {at: one for at, one in self.times.items() if at[1] in snapshot.devices}

    def _unspoken(self, device: Device, outcomes: set[tuple[str, str]]) -> Iterator[str]:
        for metric in applicable(self.metrics, device):
            known = (metric.name, device.uuid) in outcomes or metric.name in WITHOUT_PROCESSES
            if not known:
                yield f"{metric.name} on {device.uuid}: neither a reading nor a gap"

    def _of_reading(self, reading: Reading) -> Iterator[str]:
        metric, where = reading.metric, f"{reading.metric.name} on {reading.device}"
        if len({point.attributes for point in reading.points}) != len(reading.points):
            yield f"{where}: two points of one series: {reading.points}"
        if math.isfinite(reading.read_s):  # else the verdict of a GPU that is lost, of no moment
            yield from self._of_time(reading, where)
        for point in reading.points:
            yield from of_value(metric, point, where)
            yield from of_attributes(metric, point.attributes, where)
            if metric.kind is Kind.COUNTER:
                yield from self._of_count(reading, point, where)

    def _of_time(self, reading: Reading, where: str) -> Iterator[str]:
        here = (reading.metric.name, reading.device)
        now = reading.time_ns, reading.read_s
        before = self.times.get(here, (0, 0.0))
        if not (before[0] <= now[0] and before[1] <= now[1]):
            yield f"{where}: went from {before} back to {now}"
        self.times[here] = now

    def _of_count(self, reading: Reading, point: Point, where: str) -> Iterator[str]:
        here = (reading.metric.name, reading.device, point.attributes)
        before = self.counts.get(here)
        if before and before.start_ns == point.start_ns and point.value < before.value:
            yield f"{where}: fell from {before} to {point}"
        if before and (point.start_ns or 0) < (before.start_ns or 0):
            yield f"{where}: starts before it did: {before}, {point}"
        if not 0 <= (point.start_ns or 0) <= reading.time_ns:
            yield f"{where}: starts after it was read: {point}, {reading.time_ns}"
        self.counts[here] = point


def of_value(metric: Metric, point: Point, where: str) -> Iterator[str]:
    """Complain of a value that is of the wrong kind or cannot be true."""
    low, high = range_of(metric)
    if type(point.value) is not (int if metric.integer else float):
        yield f"{where}: {point.value!r} is a {type(point.value).__name__}"
    elif not math.isfinite(point.value) or not low <= point.value <= high:
        yield f"{where}: {point.value!r} is not within {low} to {high} {metric.unit}"


def of_attributes(metric: Metric, attributes: Attributes, where: str) -> Iterator[str]:
    """Complain of attributes that nobody declared, or that OTel cannot carry."""
    known = set(metric.attributes) | (set(FACTS) if metric.name in FREE else set())
    for key, value in attributes:
        if key not in known:
            yield f"{where}: {key} is not declared"
        if type(value) not in {str, int, float, bool}:
            yield f"{where}: {key} is {value!r}"
        if type(value) is int and not -(2**63) <= value < 2**63:
            yield f"{where}: {key} is {value}, which no int64 holds"
    if len(dict(attributes)) != len(attributes):
        yield f"{where}: a key stands twice: {attributes}"


def of_gap(gap: Gap) -> Iterator[str]:
    """Complain of a gap that does not say why."""
    if gap.missing.reason not in Reason or not gap.missing.detail:
        yield f"{gap.metric} on {gap.device}: a gap without a reason: {gap.missing}"
