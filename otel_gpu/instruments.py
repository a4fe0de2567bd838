"""The catalog as observable instruments, on any OTel Meter.

Callbacks read the last snapshot and nothing else: no driver is asked, so N readers cost one read,
and every series of a collection is of one moment. A `Series` is made once and kept while the stream
lives: the agent's own provider takes values and series in groups; a stock one sees ordinary
observations with the same attributes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Literal, NamedTuple

from opentelemetry.metrics import CallbackOptions, Histogram, Meter

from otel_gpu.budgets.processes import is_of_processes, pid_of
from otel_gpu.budgets.series import Bounds, SeriesBudget, is_own
from otel_gpu.catalog.forms import Supplied
from otel_gpu.kept import Kept
from otel_gpu.model import (
    NODE,
    Attributes,
    AttributeValue,
    Device,
    Kind,
    Metric,
    Owner,
    Point,
    Reading,
    ResourceKey,
    Series,
    Snapshot,
)
from otel_gpu.points import Group, Observed, group
from otel_gpu.sweep import Intervals, oldest

Supply = Callable[[Snapshot], Iterable[tuple[str, Point]]]
"""Points that the agent counts itself: (UUID of the GPU they belong to or "", point)."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How identity is spread over Resources and points (`identity`, `resource.scope`)."""

    identity: Literal["minimal", "full"] = "minimal"
    scope: Literal["gpu", "node"] = "gpu"


def identity(device: Device, shape: Shape) -> dict[str, AttributeValue]:
    """Give the attributes that tell a GPU or a MIG instance from every other, on each point."""
    attributes: dict[str, AttributeValue] = {"hw.id": device.uuid}
    if device.name:
        attributes["hw.name"] = device.name
    if device.is_instance:
        attributes |= {
            "hw.parent": device.parent,
            "nvidia.gpu.mig.profile": device.mig_profile,
            "nvidia.gpu.mig.gpu_instance": device.gpu_instance,
            "nvidia.gpu.mig.compute_instance": device.compute_instance,
        }
    if shape.identity == "full":
        full = {
            "hw.model": device.model,
            # The board's, and an instance's GPU says it: 15 labels a series are enough.
            "hw.serial_number": "" if device.is_instance else device.serial,
            "hw.driver_version": device.driver_version,
        }
        attributes |= {key: value for key, value in full.items() if value}
    return attributes


class _Whose(NamedTuple):
    """Whose a point is: an owner's, or of a GPU that several use a part of, or nobody's."""

    owner: Owner | None = None
    shared: bool = False


NOBODYS = _Whose()


def whose(metric: Metric, uuid: str, snapshot: Snapshot) -> _Whose:
    """Say whose the points of a GPU are: an activity row's, while one owner has all of it."""
    owners = snapshot.owners.get(uuid, ()) if metric.owner else ()
    if not owners:
        return NOBODYS
    return _Whose(shared=True) if snapshot.is_shared(uuid) else _Whose(owners[0])


class _Subject(NamedTuple):
    """What points are of: a metric of a GPU, and whose."""

    metric: Metric
    uuid: str
    of: _Whose


class _Streams(NamedTuple):
    """The series of a metric of a GPU, in the order of its points, and what they were made of."""

    what: tuple[_Whose, tuple[Attributes, ...], tuple[int | None, ...]]
    series: Sequence[Series]

    def known(self, of: _Whose) -> Mapping[tuple[Attributes, int | None], Series]:
        """Give the series by what tells one from another, while they are that owner's."""
        held, attributes, starts = self.what
        if held != of:
            return {}
        return dict(zip(zip(attributes, starts, strict=True), self.series, strict=True))


NOTHING = Observed(())


class Instruments:
    """Registers metrics on meters and answers their callbacks from the snapshot of `source`.

    `bounds` bound what is observed; `budget` counts what they leave out.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        source: Callable[[], Snapshot],
        *,
        every: Intervals,
        supplies: Mapping[str, Supply] | None = None,
        shape: Shape | None = None,
        bounds: Bounds | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._metrics = metrics
        self.budget = SeriesBudget(metrics, bounds or Bounds())
        self._source = source
        self._registered: set[str] = set()
        self._oldest_s = {metric.name: oldest(metric, every) for metric in metrics}
        self._supplies = supplies or {}
        self._shape = shape or Shape()
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: Snapshot | None = None
        self._until_s = 0.0
        self._streams = Kept[_Streams]()
        self._own_streams: dict[str, Kept[_Streams]] = {}  # by metric that the agent counts
        self._observed: Mapping[str, Observed] = {}

    def adopt(
        self,
        metrics: Sequence[Metric],
        *,
        every: Intervals,
        shape: Shape,
        bounds: Bounds | None = None,
    ) -> None:
        """Answer for these metrics from now on; those that are new are to be registered again.

        An instrument cannot be taken back: one whose metric is not among them observes nothing.
        Without `bounds` those from before hold.
        """
        with self._lock:
            self._metrics = metrics
            self.budget.adopt(metrics, bounds or self.budget.bounds)
            self._oldest_s = {metric.name: oldest(metric, every) for metric in metrics}
            if shape != self._shape:
                self._shape = shape
                self._streams, self._own_streams = Kept(), {}
            self._seen = None

    def register(self, meter: Meter) -> Mapping[str, Histogram]:
        """Create the instruments that are not there; give all histograms.

        Into those the agent records itself.
        """
        create = {
            Kind.GAUGE: meter.create_observable_gauge,
            Kind.COUNTER: meter.create_observable_counter,
            Kind.UPDOWNCOUNTER: meter.create_observable_up_down_counter,
        }
        histograms = {}
        for metric in self._metrics:
            if metric.kind is Kind.HISTOGRAM:
                histograms[metric.name] = meter.create_histogram(
                    metric.name,
                    metric.unit,
                    metric.brief,
                    explicit_bucket_boundaries_advisory=metric.buckets,
                )
            elif metric.name not in self._registered:
                self._registered.add(metric.name)
                callbacks = [partial(self._callback, metric)]
                create[metric.kind](
                    metric.name, callbacks, unit=metric.unit, description=metric.brief
                )
        return histograms

    def observe(self, metric: Metric) -> Observed:
        """Give the observations of one metric now."""
        with self._lock:
            self._refresh()
            if metric.name not in self._oldest_s:
                return NOTHING
            if isinstance(metric.read, Supplied):
                return self._supplied(metric)
            return self._observed.get(metric.name, NOTHING)

    def _callback(self, metric: Metric, _options: CallbackOptions) -> Observed:
        return self.observe(metric)

    def _refresh(self) -> None:
        """Make the observations of a new snapshot, or of an old one whose readings grew stale."""
        snapshot, now_s = self._source(), self._clock()
        if snapshot is self._seen and now_s <= self._until_s:
            return
        if self._seen and self._seen.devices != snapshot.devices:
            # Identities are part of what a series is.
            self._streams, self._own_streams = Kept(), {}
        with self._streams.turn():
            self._observed, self._until_s = self._observations(snapshot, now_s)
        self._seen = snapshot

    def _observations(
        self, snapshot: Snapshot, now_s: float
    ) -> tuple[Mapping[str, Observed], float]:
        """Give the observations by metric, and until when they may be shown."""
        live, until_s = self._live(snapshot, now_s)
        fresh = snapshot is not self._seen
        groups: dict[str, list[Group]] = {}
        for reading in self.budget.fit(live, lambda: self._sizes(snapshot), fresh=fresh):
            found = self._groups(
                snapshot, reading.metric, reading.device, reading.points, self._streams
            )
            groups.setdefault(reading.metric.name, []).extend(found)
        return {name: Observed(of_metric) for name, of_metric in groups.items()}, until_s

    def _live(self, snapshot: Snapshot, now_s: float) -> tuple[list[Reading], float]:
        """Give the readings that are not too old, and until when that is so."""
        live: list[Reading] = []
        until_s = inf
        for reading in snapshot.readings:
            # What is not one of ours, nobody observes: it is as old as can be.
            expires_s = reading.read_s + self._oldest_s.get(reading.metric.name, -inf)
            if now_s <= expires_s and reading.points:
                until_s = min(until_s, expires_s)
                live.append(reading)
        return live, until_s

    def _sizes(self, snapshot: Snapshot) -> Mapping[str, int]:
        """Count the points of the metrics that the agent counts itself."""
        sizes: dict[str, int] = {}
        for metric in self._metrics:
            supply = self._supplies.get(metric.name)
            if supply:
                # One that fails is told of when it is observed, and harms no other.
                with suppress(Exception):
                    sizes[metric.name] = sum(1 for _ in supply(snapshot))
        return sizes

    def _supplied(self, metric: Metric) -> Observed:
        supply, snapshot = self._supplies.get(metric.name), self._seen
        if supply is None or snapshot is None or metric.name in self.budget.left_out:
            return NOTHING
        points: dict[str, list[Point]] = {}
        for uuid, point in supply(snapshot):
            points.setdefault(uuid, []).append(point)
        self.budget.size(metric.name, sum(map(len, points.values())))
        kept = self._own_streams.setdefault(metric.name, Kept())
        with kept.turn():
            return Observed(
                [
                    group
                    for uuid, found in points.items()
                    for group in self._groups(snapshot, metric, uuid, found, kept)
                ]
            )

    def _groups(
        self,
        snapshot: Snapshot,
        metric: Metric,
        uuid: str,
        points: Sequence[Point],
        kept: Kept[_Streams],
    ) -> Sequence[Group]:
        """Give the points of a metric of a GPU; a process may be somebody else's than its GPU."""
        of = whose(metric, uuid, snapshot) if snapshot.owners else NOBODYS
        if not snapshot.holders or not is_of_processes(metric):
            return [self._group(snapshot, _Subject(metric, uuid, of), points, kept)]
        parts: dict[_Whose, list[Point]] = {}
        for point in points:
            pid = pid_of(point)
            holder = None if pid is None else snapshot.holders.get((uuid, pid))
            parts.setdefault(_Whose(holder) if holder else of, []).append(point)
        return [
            self._group(snapshot, _Subject(metric, uuid, of), part, kept)
            for of, part in parts.items()
        ]

    def _group(
        self,
        snapshot: Snapshot,
        subject: _Subject,
        points: Sequence[Point],
        kept: Kept[_Streams],
    ) -> Group:
        """Give points that are of one owner, with the series that they had before."""
        metric, uuid, of = subject
        values, attributes, starts = zip(*points, strict=True)
        key = (metric.name, uuid, of) if is_of_processes(metric) else (metric.name, uuid)
        what = (of, attributes, starts)
        streams = kept.get(key)
        if streams is None or streams.what != what:
            known = streams.known(of) if streams else {}
            device = snapshot.devices.get(uuid)
            series = [
                known.get(each) or self._made(subject, device, *each)
                for each in zip(attributes, starts, strict=True)
            ]
            streams = _Streams(what, series)
        return group(values, kept.keep(key, streams).series)

    def _made(
        self,
        subject: _Subject,
        device: Device | None,
        attributes: Attributes,
        start_ns: int | None,
    ) -> Series:
        metric, _, of = subject
        everything = identity(device, self._shape) if device else {}
        everything |= dict(metric.constant)
        everything |= dict(attributes)
        if of.owner:
            everything |= dict(of.owner.attributes)
        elif of.shared:
            everything["nvidia.gpu.shared"] = True
        on_gpu = device is not None and self._shape.scope == "gpu" and not is_own(metric)
        resource = ResourceKey(device.uuid, of.owner) if device and on_gpu else NODE
        return Series(everything, resource, start_ns)
