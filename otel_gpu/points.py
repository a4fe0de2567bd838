"""The points of one metric as columns, values and series; objects of the SDK on demand only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any, NamedTuple, overload

from opentelemetry.metrics import Observation
from opentelemetry.sdk.metrics.export import NumberDataPoint

from otel_gpu.model import ResourceKey, Series

INT64 = 2**63
"""An OTLP integer is a signed 64-bit one; one larger value would fail the whole batch."""

Number = int | float


class Group(NamedTuple):
    """Values of one Resource, and the series that each is of.

    `plain`: every value is one that OTLP can carry.
    """

    resource: ResourceKey
    values: Sequence[Number]
    series: Sequence[Series]
    plain: bool


def group(values: Sequence[Number], series: Sequence[Series]) -> Group:
    """Make a group of series that have one Resource, and of their values."""
    return Group(series[0].resource, values, series, _are_plain(values))


def _are_plain(values: Sequence[Number]) -> bool:
    """Look at all values at once: NaN and the infinities survive a sum, whatever else is in it."""
    kinds = set(map(type, values))
    if kinds == {float}:
        return isfinite(sum(values))
    return (
        kinds <= {int, float}
        and -INT64 <= min(values) <= max(values) < INT64
        and isfinite(sum(values))
    )


class SeriesObservation(Observation):
    """An observation that knows its stream."""

    __slots__ = ("series",)

    def __init__(self, value: float, series: Series) -> None:
        super().__init__(value, series.attributes)
        self.series = series


class Observed(Sequence[SeriesObservation]):
    """What a callback observes, in groups: our provider takes these as they are.

    Any other provider sees a sequence of observations, made when it looks.
    """

    __slots__ = ("_made", "groups")

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups = groups
        self._made: list[SeriesObservation] | None = None

    def _all(self) -> list[SeriesObservation]:
        if self._made is None:
            self._made = [
                observation
                for group in self.groups
                for observation in map(SeriesObservation, group.values, group.series)
            ]
        return self._made

    def __len__(self) -> int:
        return sum(len(group.values) for group in self.groups)

    def __iter__(self) -> Iterator[SeriesObservation]:
        return iter(self._all())

    def __getitem__(self, index: Any) -> Any:
        return self._all()[index]


class SeriesPoint(NumberDataPoint):
    """An SDK data point that knows which series it belongs to."""

    series: Series | None = None

    @classmethod
    def of(cls, series: Series, value: float, start_ns: int, time_ns: int) -> SeriesPoint:
        """Make the point; times are Unix nanoseconds, and a start of 0 is OTLP's "not known"."""
        point = cls.__new__(cls)
        # A frozen dataclass's __init__ sets one attribute at a time, at three times the cost.
        point.__dict__.update(
            attributes=series.attributes,
            start_time_unix_nano=start_ns,
            time_unix_nano=time_ns,
            value=value,
            exemplars=[],
            series=series,
        )
        return point


class Points(Sequence[NumberDataPoint]):
    """The `data_points` of a Gauge or Sum, each made when somebody asks for it.

    `values` and `series` are for the ways out that write text or bytes themselves.
    `started` tells whether a point has a start time: a sum has, a gauge has not. It is that of the
    series, unless `starts` has others, in Unix nanoseconds, as growth since a collection has.
    """

    __slots__ = ("_starts", "series", "started", "time_ns", "values")

    def __init__(
        self,
        values: Sequence[Number],
        series: Sequence[Series],
        time_ns: int,
        *,
        started: bool,
        starts: Sequence[int] | None = None,
    ) -> None:
        self.values = values
        self.series = series
        self.time_ns = time_ns
        self.started = started
        self._starts = starts

    @property
    def starts(self) -> Sequence[int]:
        """The start of each point, in Unix nanoseconds; 0 is OTLP's "not known"."""
        if self._starts is not None:
            return self._starts
        if not self.started:
            return [0] * len(self.values)
        return [series.start_ns or 0 for series in self.series]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[NumberDataPoint]:
        return map(self._point, self.values, self.series, self.starts)

    @overload
    def __getitem__(self, index: int) -> NumberDataPoint: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[NumberDataPoint]: ...
    def __getitem__(self, index: int | slice) -> NumberDataPoint | Sequence[NumberDataPoint]:
        if isinstance(index, slice):
            return Points(
                self.values[index],
                self.series[index],
                self.time_ns,
                started=self.started,
                starts=self.starts[index],
            )
        return self._point(self.values[index], self.series[index], self.starts[index])

    def __repr__(self) -> str:
        return repr(list(self))

    def _point(self, value: Number, series: Series, start_ns: int) -> NumberDataPoint:
        return SeriesPoint.of(series, value, start_ns, self.time_ns)
