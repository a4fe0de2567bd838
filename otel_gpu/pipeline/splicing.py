"""A metric made of our own points, as the bytes of the last collection with other numbers.

A point is two or three numbers of fixed length (start, time, value) before attributes that never
change. While a metric has the same series, all of its bytes stay but its times and values, and so
does every length: a `Template` holds what stays, and writes the numbers between.

How protobuf writes a message: https://protobuf.dev/programming-guides/encoding. The fields:
opentelemetry/proto/metrics/v1/metrics.proto of OTLP 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple

from opentelemetry.sdk.metrics.export import AggregationTemporality, Gauge, Metric, Sum

from otel_gpu.model import Series
from otel_gpu.pipeline import official
from otel_gpu.points import Points

ATTRIBUTES = "otlp.attributes"
"""Where a series' memo keeps its encoded attributes."""

# A tag is a field's number times 8, plus 1 where 64 bits follow, or 2 where a length does.
METRIC = b"\x12"  # of ScopeMetrics
GAUGE, SUM = b"\x2a", b"\x3a"  # of Metric
POINT = b"\x0a"  # of Gauge and Sum
START, TIME, DOUBLE, INT = b"\x11", b"\x19", b"\x21", b"\x31"  # of NumberDataPoint
NUMBER = 9
"""Bytes of a tag and 64 bits. A float's value takes as many as an int's."""

SUM_ENDS = {
    (AggregationTemporality.CUMULATIVE, True): b"\x10\x02\x18\x01",
    (AggregationTemporality.CUMULATIVE, False): b"\x10\x02",  # protobuf does not write False
    (AggregationTemporality.DELTA, True): b"\x10\x01\x18\x01",
    (AggregationTemporality.DELTA, False): b"\x10\x01",
}
"""What a Sum says behind its points."""

TAGS: dict[type, bytes] = {float: DOUBLE, int: INT}
PACK: dict[type, Callable[[Any], bytes]] = {float: Struct("<d").pack, int: Struct("<q").pack}
moment = Struct("<Q").pack


class UnusualError(Exception):
    """A metric that is not made of our points, or not as our provider makes them."""


class Made(NamedTuple):
    """What a metric is made of. Two of the same `fixed` differ in their numbers only."""

    fixed: tuple[Any, ...]
    values: Sequence[Any]
    time_ns: int


def taken_apart(metric: Metric) -> Made:
    """Take a metric apart. Raises UnusualError."""
    data: Any = metric.data
    points = data.data_points
    if not isinstance(points, Points) or not points.values or not points.time_ns:
        raise UnusualError  # a time of 0 would not be written
    kinds = tuple(map(type, points.values))
    tag, end = _frame(data)
    names = (metric.name, metric.description, metric.unit)
    starts = tuple(points.starts) if points.started else None
    fixed = (names, tag, end, points.series, kinds, starts)
    return Made(fixed, points.values, points.time_ns)


class Template:
    """The bytes of a metric. Raises UnusualError, and what the official encoder raises."""

    def __init__(self, fixed: tuple[Any, ...]) -> None:
        names, tag, end, series, kinds, starts = self.fixed = fixed
        if not PACK.keys() >= set(kinds):
            raise UnusualError
        self._kinds = kinds
        self._only = kinds[0] if len(set(kinds)) == 1 else None
        before, behind = _points(series, starts)
        size = sum(map(len, before)) + sum(map(len, behind)) + 2 * NUMBER * len(series) + len(end)
        head = official.title(*names) + tag + varint(size)
        opening = METRIC + varint(len(head) + size) + head
        # Of each point: what comes before its time, the time, the value. Then what ends the metric.
        between = (end_ + start for end_, start in zip(behind, before[1:], strict=False))
        self._pieces: list[bytes] = [b""] * (3 * len(series) + 1)
        self._pieces[0:-1:3] = [opening + before[0], *between]
        self._pieces[-1] = behind[-1] + end
        self.size = len(opening) + size

    def write(self, values: Sequence[Any], time_ns: int) -> list[bytes]:
        """Give the bytes, in pieces that are good until the next time. struct.error: too large."""
        pieces, at = self._pieces, TIME + moment(time_ns)
        if self._only:
            pieces[1::3] = [at + TAGS[self._only]] * len(values)
            pieces[2::3] = map(PACK[self._only], values)
        else:
            timed = {kind: at + tag for kind, tag in TAGS.items()}
            pieces[1::3] = [timed[kind] for kind in self._kinds]
            pieces[2::3] = [
                PACK[kind](value) for kind, value in zip(self._kinds, values, strict=True)
            ]
        return pieces


def _frame(data: Any) -> tuple[bytes, bytes]:
    """Give the tag of a Gauge or a Sum, and what it says behind its points."""
    if type(data) is Gauge:
        return GAUGE, b""
    end = (
        SUM_ENDS.get((data.aggregation_temporality, data.is_monotonic))
        if type(data) is Sum
        else None
    )
    if end is None:
        raise UnusualError
    return SUM, end


def _points(
    series: Sequence[Series], starts: Sequence[int] | None
) -> tuple[list[bytes], list[bytes]]:
    """Give what stands before the time of each point, and what behind its value."""
    before, behind = [], []
    for each, start in zip(series, starts or (0,) * len(series), strict=True):
        attributes = each.memo.get(ATTRIBUTES)
        if attributes is None:
            attributes = each.memo[ATTRIBUTES] = official.attributes(each.attributes)
        length = (3 if start else 2) * NUMBER + len(attributes)
        head = POINT + varint(length)
        before.append(head + START + moment(start) if start else head)
        behind.append(attributes)
    return before, behind


@lru_cache(maxsize=4096)
def varint(number: int) -> bytes:
    """Write a length as protobuf does: seven bits a byte, the lowest first."""
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    written.append(number)
    return bytes(written)
