"""The catalog as observable instruments, on any OTel Meter.

Callbacks read the last snapshot and nothing else: no driver is asked, so N readers cost one read,
and every series of a collection is of one moment. On the agent's own provider each observation
carries its `Series`, made once and kept while the stream lives; a stock provider sees an ordinary
observation with the same attributes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from opentelemetry.metrics import CallbackOptions, Histogram, Meter, Observation

from otel_gpu.catalog.forms import Supplied
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
from otel_gpu.sweep import Intervals, oldest

Supply = Callable[[Snapshot], Iterable[tuple[str, Point]]]
"""Points that the agent counts itself: (UUID of the GPU they belong to or "", point)."""


class SeriesObservation(Observation):
    """An observation that knows its stream."""

    __slots__ = ("series",)

    def __init__(self, value: float, series: Series) -> None:
        super().__init__(value, series.attributes)
        self.series = series


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


def sole_owner(metric: Metric, owners: tuple[Owner, ...]) -> Owner | None:
    """Give the owner whose attributes a point carries: of an activity row, while it is alone."""
    return owners[0] if metric.owner and len(owners) == 1 else None


class Instruments:
    """Registers metrics on meters and answers their callbacks from the snapshot of `source`."""

    def __init__(
        self,
        metrics: Sequence[Metric],
        source: Callable[[], Snapshot],
        *,
        every: Intervals,
        supplies: Mapping[str, Supply] | None = None,
        shape: Shape | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.metrics = metrics
        self._source = source
        self._every = every
        self._supplies = supplies or {}
        self._shape = shape or Shape()
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: Snapshot | None = None
        self._until_s = 0.0
        self._series: dict[Any, Series] = {}
        self._own_series: dict[str, dict[Any, Series]] = {}  # by metric that the agent counts
        self._observations: dict[str, list[Observation]] = {}

    def register(self, meter: Meter) -> Mapping[str, Histogram]:
        """Create the instruments; give the histograms, into which the agent records itself."""
        create = {
            Kind.GAUGE: meter.create_observable_gauge,
            Kind.COUNTER: meter.create_observable_counter,
            Kind.UPDOWNCOUNTER: meter.create_observable_up_down_counter,
        }
        histograms = {}
        for metric in self.metrics:
            if metric.kind is Kind.HISTOGRAM:
                histograms[metric.name] = meter.create_histogram(
                    metric.name,
                    metric.unit,
                    metric.brief,
                    explicit_bucket_boundaries_advisory=metric.buckets,
                )
            else:
                callbacks = [partial(self._callback, metric)]
                create[metric.kind](
                    metric.name, callbacks, unit=metric.unit, description=metric.brief
                )
        return histograms

    def observe(self, metric: Metric) -> list[Observation]:
        """Give the observations of one metric now."""
        with self._lock:
            self._refresh()
            if isinstance(metric.read, Supplied):
                return self._supplied(metric)
            return self._observations.get(metric.name, [])

    def _callback(self, metric: Metric, _options: CallbackOptions) -> list[Observation]:
        return self.observe(metric)

    def _refresh(self) -> None:
        """Make the observations of a new snapshot, or of an old one whose readings grew stale."""
        snapshot, now_s = self._source(), self._clock()
        if snapshot is self._seen and now_s <= self._until_s:
            return
        if self._seen and self._seen.devices != snapshot.devices:
            self._series, self._own_series = {}, {}  # identities are part of what a series is
        before, self._series = self._series, {}
        observations: dict[str, list[Observation]] = {}
        until_s = float("inf")
        for reading in snapshot.readings:
            expires_s = reading.read_s + oldest(reading.metric, self._every)
            if now_s > expires_s:
                continue
            until_s = min(until_s, expires_s)
            observations.setdefault(reading.metric.name, []).extend(
                self._observed(snapshot, reading, before, self._series)
            )
        self._observations, self._seen, self._until_s = observations, snapshot, until_s

    def _supplied(self, metric: Metric) -> list[Observation]:
        supply, snapshot = self._supplies.get(metric.name), self._seen
        if supply is None or snapshot is None:
            return []
        before, kept = self._own_series.get(metric.name, {}), dict[Any, Series]()
        self._own_series[metric.name] = kept
        readings = (
            Reading(metric, uuid, (point,), snapshot.time_ns, snapshot.read_s)
            for uuid, point in supply(snapshot)
        )
        return [
            observation
            for reading in readings
            for observation in self._observed(snapshot, reading, before, kept)
        ]

    def _observed(
        self,
        snapshot: Snapshot,
        reading: Reading,
        before: Mapping[Any, Series],
        kept: dict[Any, Series],
    ) -> Iterable[Observation]:
        metric, uuid = reading.metric, reading.device
        owner = sole_owner(metric, snapshot.owners.get(uuid, ()))
        for value, attributes, start_ns in reading.points:
            key = (metric.name, uuid, owner, attributes, start_ns)
            series = before.get(key)
            if series is None:
                device = snapshot.devices.get(uuid)
                series = self._made(metric, device, owner, attributes, start_ns)
            kept[key] = series
            yield SeriesObservation(value, series)

    def _made(
        self,
        metric: Metric,
        device: Device | None,
        owner: Owner | None,
        attributes: Attributes,
        start_ns: int | None,
    ) -> Series:
        everything = identity(device, self._shape) if device else {}
        everything |= dict(metric.constant)
        everything |= dict(attributes)
        if owner:
            everything |= dict(owner.attributes)
        on_gpu = device is not None and self._shape.scope == "gpu" and not is_own(metric)
        resource = ResourceKey(device.uuid, owner) if device and on_gpu else NODE
        return Series(everything, resource, start_ns)


def is_own(metric: Metric) -> bool:
    """Whether a metric is about the agent, and so stands on the node's Resource."""
    return metric.name.startswith(("otel_gpu.", "otel.", "process."))
