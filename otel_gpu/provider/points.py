"""The points of one metric: rows of (value, series), turned into SDK data points only on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from opentelemetry.sdk.metrics.export import NumberDataPoint

from otel_gpu.model import Series

Row = tuple[int | float, Series]


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
    `started` tells whether a point has a start time: a sum has, a gauge has not.
    """

    __slots__ = ("rows", "started", "time_ns")

    def __init__(self, rows: Sequence[Row], time_ns: int, *, started: bool) -> None:
        self.rows = rows
        self.time_ns = time_ns
        self.started = started

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[NumberDataPoint]:
        return map(self._point, self.rows)

    @overload
    def __getitem__(self, index: int) -> NumberDataPoint: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[NumberDataPoint]: ...
    def __getitem__(self, index: int | slice) -> NumberDataPoint | Sequence[NumberDataPoint]:
        if isinstance(index, slice):
            return Points(self.rows[index], self.time_ns, started=self.started)
        return self._point(self.rows[index])

    def __repr__(self) -> str:
        return repr(list(self))

    def _point(self, row: Row) -> NumberDataPoint:
        value, series = row
        start_ns = (series.start_ns or 0) if self.started else 0
        return SeriesPoint.of(series, value, start_ns, self.time_ns)
