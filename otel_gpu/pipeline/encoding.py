"""MetricsData as OTLP's bytes, the very same as the official encoder's, at a fraction of its cost.

Attributes are encoded once, by the official encoder, and kept with their series; so are Resources,
scopes and the names of metrics while they are in use. A collection writes the numbers between
(`splicing`). All else (histograms, exemplars, other providers' points, numbers of unusual types)
goes through the official encoder every time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from opentelemetry.sdk.metrics.export import (
    Metric,
    MetricsData,
    ResourceMetrics,
    ScopeMetrics,
)

from otel_gpu.kept import Kept
from otel_gpu.pipeline import official
from otel_gpu.pipeline.dividing import halves
from otel_gpu.pipeline.splicing import METRIC, Template, taken_apart, varint

log = logging.getLogger(__name__)

LIMIT = 3_500_000
"""Bytes of a request, not compressed: gRPC servers take 4 MiB unless they are told otherwise."""

MOST_COMPLAINTS = 1000
"""What was complained of is remembered up to here, and then forgotten."""

RESOURCE_METRICS, SCOPE_METRICS = b"\x0a", b"\x12"
"""Tags in the request and in a ResourceMetrics: the field's number times 8, plus 2."""


class Encoded(NamedTuple):
    """A serialised ExportMetricsServiceRequest, not compressed, and how many points are in it."""

    body: bytes
    points: int


class _Part(NamedTuple):
    """A ResourceMetrics in pieces; how many bytes, points, and points that were left out."""

    pieces: list[bytes]
    size: int
    points: int
    left_out: int


class Encoder:
    """Turns the collections of one OTLP target into requests.

    What cannot be encoded is left out, counted in `left_out` (points) and logged once for each
    metric; the rest is sent, where the official encoder would give up the whole batch. And where
    two ResourceMetrics have equal Resources, or two ScopeMetrics of one have equal scopes, both are
    written: the official encoder loses the first. (Our provider gives each once.)
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.left_out = 0
        self._limit = limit
        self._complaints: set[str] = set()
        # A frame's thing is held beside it, so that no other can get its id.
        self._frames = Kept[tuple[Any, official.Frame]]()
        self._templates = Kept[Template]()
        self._points = self._lost = 0  # of the ResourceMetrics that is being encoded
        self._under = 0  # which that is

    def encode(self, data: MetricsData) -> list[Encoded]:
        """Give the requests, each within the limit unless one point alone is over it; or none.

        They are divided between Resources, else between the metrics of one, else inside a metric.
        """
        with self._frames.turn(), self._templates.turn():
            parts = [part for whole in data.resource_metrics for part in self._parts(whole)]
        self.left_out += sum(part.left_out for part in parts)
        return list(_requests(parts, self._limit))

    def _parts(self, whole: ResourceMetrics) -> Iterator[_Part]:
        """Encode a ResourceMetrics, in as many parts as it takes."""
        self._points = self._lost = 0
        pieces: list[bytes] = []
        size = self._resource(whole, pieces)
        part = _Part(pieces, size, self._points, self._lost)
        parts = halves(whole) if size > self._limit else ()
        for half in parts:
            yield from self._parts(half)
        if not parts:
            yield part

    def _resource(self, whole: ResourceMetrics, out: list[bytes]) -> int:
        self._under = id(whole.resource)
        try:
            frame = self._frame(whole.resource, official.resource)
        except Exception as error:  # noqa: BLE001 - Resources are anybody's; the others are sent
            for scope in whole.scope_metrics:
                self._lose(scope.metrics, error)
            return 0
        return _framed(RESOURCE_METRICS, frame, self._scope, whole.scope_metrics, out)

    def _scope(self, whole: ScopeMetrics, out: list[bytes]) -> int:
        try:
            frame = self._frame(whole.scope, official.scope)
        except Exception as error:  # noqa: BLE001 - as for a Resource
            self._lose(whole.metrics, error)
            return 0
        return _framed(SCOPE_METRICS, frame, self._metric, whole.metrics, out)

    def _metric(self, metric: Metric, out: list[bytes]) -> int:
        """Append a metric: spliced where it is ours and as usual, else officially encoded."""
        try:
            return self._splice(metric, out)
        except Exception:  # noqa: BLE001 - whatever is unusual, the official encoder decides of it
            return self._whole(metric, out)

    def _splice(self, metric: Metric, out: list[bytes]) -> int:
        """Append a metric that is made of our points, and give its size."""
        found = taken_apart(metric)
        key = (self._under, metric.name)
        template = self._templates.get(key)
        if template is None or template.fixed != found.fixed:
            template = Template(found.fixed)
        self._templates.keep(key, template)
        out += template.write(found.values, found.time_ns)
        self._points += len(found.values)
        return template.size

    def _frame(self, thing: Any, make: Callable[[Any], official.Frame]) -> official.Frame:
        kept = self._frames.get(id(thing)) or (thing, make(thing))
        return self._frames.keep(id(thing), kept)[1]

    def _whole(self, metric: Metric, out: list[bytes]) -> int:
        """Append a metric as the official encoder writes it."""
        try:
            encoded = official.metric(metric)
        except Exception as error:  # noqa: BLE001 - it raises whatever it meets; the others are sent
            self._lose([metric], error)
            return 0
        before = METRIC + varint(len(encoded))
        out += (before, encoded)
        self._points += len(metric.data.data_points)
        return len(before) + len(encoded)

    def _lose(self, metrics: Iterable[Metric], error: Exception) -> None:
        """Count and say what is left out."""
        cause = getattr(error, "original_exception", error)  # it quotes the whole metric otherwise
        for metric in metrics:
            points = len(metric.data.data_points)
            self._lost += points
            if self._is_news(repr(metric.name)):
                text = "%r: its %d points cannot be encoded and are left out: %r"
                log.warning(text, metric.name, points, cause)

    def _is_news(self, name: str) -> bool:
        """Whether nothing was said of a metric yet."""
        if name in self._complaints:
            return False
        if len(self._complaints) >= MOST_COMPLAINTS:
            self._complaints.clear()
        self._complaints.add(name)
        return True


def _requests(parts: Iterable[_Part], limit: int) -> Iterator[Encoded]:
    """Put parts together, in their order, while they are within the limit."""
    pieces: list[bytes] = []
    size = points = 0
    for part in parts:
        if pieces and size + part.size > limit:
            yield Encoded(b"".join(pieces), points)
            pieces, size, points = [], 0, 0
        pieces += part.pieces
        size += part.size
        points += part.points
    if pieces:
        yield Encoded(b"".join(pieces), points)


def _framed(
    tag: bytes,
    frame: official.Frame,
    append: Callable[[Any, list[bytes]], int],
    contents: Iterable[Any],
    out: list[bytes],
) -> int:
    """Append a message around its contents, and give its size."""
    place = len(out)
    out.append(b"")  # what comes first says how much follows
    size = len(frame.head) + len(frame.tail)
    for content in contents:
        size += append(content, out)
    before = tag + varint(size)
    out[place] = before + frame.head
    out.append(frame.tail)
    return len(before) + size
