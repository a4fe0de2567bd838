"""Observable instruments: their callbacks are run at each collection, and nothing is kept of it."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from math import isfinite
from numbers import Integral, Real
from threading import Lock
from typing import Any, Protocol

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, CallbackT, Observation
from opentelemetry.sdk.metrics.export import AggregationTemporality, Gauge, Metric, Sum
from opentelemetry.sdk.resources import Resource

from otel_gpu.model import ResourceKey, Series
from otel_gpu.points import INT64, Group, Number, Observed, Points

log = logging.getLogger(__name__)

Columns = tuple[Sequence[Number], Sequence[Series]]
"""Values, and the series that each is of."""

Found = dict[int, tuple[Resource, Columns]]
"""What was observed of one instrument, by the identity of its Resource."""

FindResource = Callable[[ResourceKey], Resource]
Observe = Callable[[CallbackOptions], Iterable[Observation]]


class SeriesObservation(Protocol):
    """What a callback yields instead of an Observation, for a series that is kept."""

    @property
    def value(self) -> int | float:
        """The reading, in the instrument's unit."""

    @property
    def series(self) -> Series:
        """Whose reading it is: attributes, Resource and start time."""


class Observable(ABC):
    """The part that the three observable instruments share.

    Callbacks may run for several readers at the same time, so they must be thread-safe; one that
    raises loses the rest of its own observations, and is logged once until it works again.
    """

    def __init__(self, name: str, unit: str, description: str) -> None:
        self.name = name
        self.unit = unit
        self.description = description
        self._callbacks: tuple[Observe, ...] = ()
        self._failing = False
        self._dropping = False

    def add_callbacks(self, callbacks: Iterable[CallbackT]) -> None:
        """Observe through these as well."""
        self._callbacks += tuple(map(_callable, callbacks))

    def found(self, options: CallbackOptions, find: FindResource) -> Found:
        """Run every callback, and give what they observed."""
        found: Found = {}
        failure: Exception | None = None
        dropped: list[object] = []
        for callback in self._callbacks:
            try:
                observed = callback(options)
                if isinstance(observed, Observed):
                    _take(observed.groups, find, found, dropped)
                else:
                    _gather(observed, find, found, dropped)
            except Exception as error:  # noqa: BLE001 - a callback is foreign code, and one of many
                failure = error
        self._tell(failure, dropped)
        return found

    def metric(self, columns: Columns, time_ns: int) -> Metric:
        """Give the columns of one Resource their SDK form."""
        return Metric(self.name, self.description, self.unit, self._data(columns, time_ns))

    @abstractmethod
    def _data(self, columns: Columns, time_ns: int) -> Gauge | Sum:
        """Give the columns the form of the instrument's kind."""

    def _tell(self, failure: Exception | None, dropped: Sequence[object]) -> None:
        """Log a change: once when something goes wrong, once when it is over."""
        if failure and not self._failing:
            log.error("a callback of %s fails: %r", self.name, failure, exc_info=failure)
        elif self._failing and not failure:
            log.info("the callbacks of %s work again", self.name)
        if dropped and not self._dropping:
            log.warning("%s: dropped %r: not a number that OTLP can carry", self.name, dropped[0])
        self._failing = failure is not None
        self._dropping = bool(dropped)


class ObservableGauge(Observable, metrics.ObservableGauge):
    """A gauge: the value now."""

    def _data(self, columns: Columns, time_ns: int) -> Gauge:
        return Gauge(Points(*columns, time_ns, started=False))


class ObservableCounter(Observable, metrics.ObservableCounter):
    """A monotonic sum, cumulative whatever its reader prefers: there is no state for deltas."""

    def _data(self, columns: Columns, time_ns: int) -> Sum:
        return _sum(columns, time_ns, monotonic=True)


class ObservableUpDownCounter(Observable, metrics.ObservableUpDownCounter):
    """A sum that may fall, cumulative."""

    def _data(self, columns: Columns, time_ns: int) -> Sum:
        return _sum(columns, time_ns, monotonic=False)


def _sum(columns: Columns, time_ns: int, *, monotonic: bool) -> Sum:
    points = Points(*columns, time_ns, started=True)
    return Sum(points, AggregationTemporality.CUMULATIVE, monotonic)


def _take(groups: Iterable[Group], find: FindResource, found: Found, dropped: list[object]) -> None:
    """Take groups as they are, where they are plain."""
    for group in groups:
        if not group.plain:
            _gather(Observed((group,)), find, found, dropped)
            continue
        _add(found, find(group.resource), group.values, group.series)


def _add(
    found: Found, resource: Resource, values: Sequence[Number], series: Sequence[Series]
) -> None:
    there = found.get(id(resource))
    if there is not None:
        # Not by adding to a list: that is the snapshot's, and other readers collect it too.
        before, of = there[1]
        values, series = [*before, *values], [*of, *series]
    found[id(resource)] = resource, (values, series)


def _gather(
    observations: Iterable[Observation | SeriesObservation],
    find: FindResource,
    found: Found,
    dropped: list[object],
) -> None:
    """Sort observations by Resource, and leave out what OTLP cannot carry."""
    by_resource: dict[int, tuple[Resource, list[Number], list[Series]]] = {}
    try:
        for observation in observations:
            value = _number(observation.value)
            if value is None:
                dropped.append(observation.value)
                continue
            series = getattr(observation, "series", None) or _series(observation)
            resource = find(series.resource)
            _, values, of = by_resource.setdefault(id(resource), (resource, [], []))
            values.append(value)
            of.append(series)
    finally:  # a callback that raises keeps what it gave before
        for columns in by_resource.values():
            _add(found, *columns)


def _series(observation: Any) -> Series:
    """Give an API observation, which has attributes only, a series for this collection."""
    return Series(dict(observation.attributes or ()))


def _number(value: object) -> int | float | None:
    """Give the value as OTLP can carry it, or None: a bool, NaN or 2^64 would fail the batch.

    Subclasses (an enum's member, numpy's numbers) become plain numbers, whose `repr` is a number.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, Integral):
        return int(value) if -INT64 <= int(value) < INT64 else None
    if isinstance(value, Real) and isfinite(value):
        return float(value)
    return None


def _callable(callback: CallbackT) -> Observe:
    """Give a callback as a function; the API also takes generators that are sent the options."""
    if not isinstance(callback, Generator):
        return callback
    next(callback)  # up to its first yield, as the API documents
    lock = Lock()  # two readers may collect at once, and a generator runs for one at a time

    def observe(options: CallbackOptions) -> Iterable[Observation]:
        with lock:
            try:
                return list(callback.send(options))
            except StopIteration:
                return ()

    return observe
