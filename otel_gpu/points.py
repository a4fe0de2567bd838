"""The points of one metric: rows of (value, series), made objects of the SDK only on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any, NamedTuple, overload

from opentelemetry.metrics import Observation
from opentelemetry.sdk.metrics.export import NumberDataPoint

from otel_gpu.model import ResourceKey, Series

INT64 = 2**63
"""An OTLP integer is a signed 64-bit one; one larger value would fail the whole batch."""

Row = tuple[int | float, Series]


class Group(NamedTuple):
    """Rows of one Resource. `plain`: every value is one that OTLP can carry."""

    resource: ResourceKey
    rows: list[Row]
    plain: bool


def group(values: Sequence[int | float], series: Sequence[Series]) -> Group:
    """Make a group of series that have one Resource, and of their values."""
    return Group(series[0].resource, list(zip(values, series, strict=True)), _are_plain(values))


def _are_plain(values: Sequence[int | float]) -> bool:
    """Look at all values at once: NaN and the infinities survive a sum, whatever else is in it."""
    return (
        {int, float}.issuperset(map(type, values))
        and max(values) < INT64
        and min(values) >= -INT64
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
                SeriesObservation(value, series)
                for group in self.groups
                for value, series in group.rows
            ]
        return self._made

    def __len__(self) -> int:
        return sum(len(group.rows) for group in self.groups)

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

    `rows` is what they are made from, for the ways out that write text or bytes themselves.
    `started` tells whether a point has a start time: a sum has, a gauge has not. It is that of the
    series, unless `starts` has others, in Unix nanoseconds, as growth since a collection has.
    """

    __slots__ = ("_starts", "rows", "started", "time_ns")

    def __init__(
        self,
        rows: Sequence[Row],
        time_ns: int,
        *,
        started: bool,
        starts: Sequence[int] | None = None,
    ) -> None:
        self.rows = rows
        self.time_ns = time_ns
        self.started = started
        self._starts = starts

    @property
    def starts(self) -> Sequence[int]:
        """The start of each point, in Unix nanoseconds; 0 is OTLP's "not known"."""
        if self._starts is not None:
            return self._starts
        if not self.started:
            return [0] * len(self.rows)
        return [series.start_ns or 0 for _, series in self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[NumberDataPoint]:
        return map(self._point, self.rows, self.starts)

    @overload
    def __getitem__(self, index: int) -> NumberDataPoint: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[NumberDataPoint]: ...
    def __getitem__(self, index: int | slice) -> NumberDataPoint | Sequence[NumberDataPoint]:
        if isinstance(index, slice):
            rows, starts = self.rows[index], self.starts[index]
            return Points(rows, self.time_ns, started=self.started, starts=starts)
        return self._point(self.rows[index], self.starts[index])

    def __repr__(self) -> str:
        return repr(list(self))

    def _point(self, row: Row, start_ns: int) -> NumberDataPoint:
        value, series = row
        return SeriesPoint.of(series, value, start_ns, self.time_ns)
