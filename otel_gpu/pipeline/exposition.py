"""MetricsData as a Prometheus page: text format 0.0.4, or OpenMetrics 1.0.

Values are written with `repr`, which a reader of the page turns back into the very same number, and
which costs a third of Go's notation. What stands before a value is made once and kept in the
series' memo.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import accumulate, chain
from typing import Any

from opentelemetry.sdk.metrics.export import (
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    Sum,
)
from opentelemetry.sdk.resources import Resource

from otel_gpu.model import Kind, Series
from otel_gpu.pipeline.naming import Family, family, label_name
from otel_gpu.points import Number, Points

log = logging.getLogger(__name__)

TARGET = Family("target_info", "target", "info", "")


class Format(Enum):
    """A notation, and the media type that announces it."""

    TEXT = "text/plain; version=0.0.4; charset=utf-8"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


@dataclass(slots=True)
class _Block:
    """One family of a page: all its samples stand together, whatever Resource they are from.

    A sample begins with a newline. So what stands before a value and the value are two pieces, with
    nothing to be put between one sample and the next.
    """

    family: Family
    help: str
    pieces: list[str] = field(default_factory=list)


class _Page:
    """The families of a page, each under its samples' name and, for OpenMetrics, its own."""

    def __init__(self) -> None:
        self._blocks: dict[str, _Block] = {}

    def clash(self, named: Family) -> Family | None:
        """Give a family of another kind that has one of the names already."""
        for name in (named.base, named.name):
            block = self._blocks.get(name)
            if block and block.family[:3] != named[:3]:
                return block.family
        return None

    def block(self, named: Family, about: str) -> _Block:
        """Give the family's block, which is made where there is none."""
        block = self._blocks.get(named.name)
        if block is None:
            block = self._blocks[named.base] = self._blocks[named.name] = _Block(named, about)
        return block

    def texts(self, form: Format) -> Iterator[str]:
        """Write the page, family by family."""
        head = _openmetrics_head if form is Format.OPENMETRICS else _text_head
        for name, block in self._blocks.items():
            if name == block.family.name and block.pieces:
                yield "".join((head(block), *block.pieces, "\n"))
        if form is Format.OPENMETRICS:
            yield "# EOF\n"


class Exposition:
    """Writes pages. `created` adds OpenMetrics' `_created`: when each counter began to count."""

    def __init__(self, *, created: bool = False) -> None:
        self._created = created
        self._complaints: set[str] = set()

    def render(
        self,
        data: MetricsData | None,
        form: Format,
        target: Resource | None = None,
        only: Collection[str] = (),
    ) -> bytes:
        """Write a page. `target` becomes `target_info`; `only` are the names to write, if any."""
        page = _Page()
        if target is not None and _wanted(TARGET, only):
            sample = f"\ntarget_info{label_text(target.attributes)} 1"
            page.block(TARGET, "Target metadata").pieces.append(sample)
        for alike in _alike(data):
            self._add(alike, form, only, page)
        # Encoded in pieces: the whole page once more as text would be new memory at each scrape,
        # and a kernel takes longer to give that than this takes to write.
        return b"".join(text.encode() for text in page.texts(form))

    def _add(
        self, alike: Sequence[Metric], form: Format, only: Collection[str], page: _Page
    ) -> None:
        """Append the samples of one metric, which each Resource has some of, to its family."""
        metric = alike[0]
        kind = _kind(metric)
        if kind is None:
            self._complain(f"{metric.name}: {type(metric.data).__name__} has no text form")
            return
        named = family(metric.name, metric.unit or "", kind)
        if not _wanted(named, only):
            return
        if other := page.clash(named):
            self._complain(f"{metric.name}: {other.name} is a {other.type} already")
            return
        block = page.block(named, metric.description or "")
        if isinstance(metric.data, Histogram):
            block.pieces += [sample for each in alike for sample in _histograms(named.name, each)]
        else:
            block.pieces += self._samples(alike, named, form)

    def _samples(self, alike: Sequence[Metric], named: Family, form: Format) -> list[str]:
        """Write the numbers of a metric, in pieces."""
        name = named.name
        all_values: list[Number] = []
        all_series: list[Series] = []
        for values, series in map(_columns, alike):
            all_values += values
            all_series += series
        try:
            heads = [series.memo[name] for series in all_series]
        except KeyError:  # a series is new
            heads = [_head(name, series) for series in all_series]
        pieces = [""] * (2 * len(heads))
        pieces[0::2] = heads
        pieces[1::2] = map(repr, all_values)
        if self._created and form is Format.OPENMETRICS and named.type == "counter":
            # OpenMetrics, "Grouping": what belongs to one label set stands together.
            pieces[1::2] = [
                value + _created(named, series) if series.start_ns else value
                for value, series in zip(pieces[1::2], all_series, strict=True)
            ]
        return pieces

    def _complain(self, text: str) -> None:
        """Say once that something cannot be written; the rest of the page is not affected."""
        if text not in self._complaints:
            self._complaints.add(text)
            log.warning("not on the Prometheus page: %s", text)


def _columns(metric: Metric) -> tuple[Sequence[Number], Sequence[Series]]:
    """Give the values of a metric and their series; made here where another provider collected."""
    points: Any = metric.data.data_points
    if isinstance(points, Points):
        return points.values, points.series
    values = [point.value for point in points]
    return values, [Series(point.attributes or {}) for point in points]


def label_text(attributes: Mapping[str, Any] | None) -> str:
    """Give attributes as `{name="value",...}`, or "" when there are none."""
    pairs = _pairs(attributes)
    return f"{{{pairs}}}" if pairs else ""


def _pairs(attributes: Mapping[str, Any] | None) -> str:
    """Write attributes as labels; keys that become the same label share it, as the spec says."""
    labels: dict[str, str] = {}
    for key, value in sorted((attributes or {}).items()):
        label, text = label_name(key), _value(value)
        labels[label] = f"{labels[label]};{text}" if label in labels else text
    return ",".join(f'{label}="{text}"' for label, text in labels.items() if label)


def _value(value: Any) -> str:
    """Give a label's value, escaped; what is not a string is written as JSON, as Go writes it."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = value if isinstance(value, str) else _json(value)
    return _escape(_encodable(text)).replace('"', r"\"")


def _json(value: Any) -> str:
    return json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":"))


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _encodable(text: str) -> str:
    """Replace lone surrogates, which a file name that is not UTF-8 has, by U+FFFD.

    They cannot be encoded, and one of them would cost the whole page.
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _alike(data: MetricsData | None) -> Iterable[Sequence[Metric]]:
    """Give the metrics that are one, but for their Resources, together."""
    found: dict[Hashable, list[Metric]] = {}
    for resource_metrics in data.resource_metrics if data else ():
        for scope_metrics in resource_metrics.scope_metrics:
            for metric in scope_metrics.metrics:
                monotonic = getattr(metric.data, "is_monotonic", None)
                key = (metric.name, metric.unit, type(metric.data), monotonic)
                found.setdefault(key, []).append(metric)
    return found.values()


def _kind(metric: Metric) -> Kind | None:
    if isinstance(metric.data, Sum):
        return Kind.COUNTER if metric.data.is_monotonic else Kind.UPDOWNCOUNTER
    if isinstance(metric.data, Gauge):
        return Kind.GAUGE
    return Kind.HISTOGRAM if isinstance(metric.data, Histogram) else None


def _wanted(named: Family, only: Collection[str]) -> bool:
    """Whether a page that is asked for these names has this family."""
    if not only:
        return True
    parts = ("_bucket", "_sum", "_count") if named.type == "histogram" else ()
    return not {named.name, named.base, *(named.name + part for part in parts)}.isdisjoint(only)


def _histograms(name: str, metric: Metric) -> Iterable[str]:
    data: Any = metric.data
    return chain.from_iterable(_histogram(name, point) for point in data.data_points)


def _histogram(name: str, point: HistogramDataPoint) -> Iterable[str]:
    pairs = _pairs(point.attributes)
    inner = f"{pairs}," if pairs else ""
    bounds = [*(repr(float(bound)) for bound in point.explicit_bounds), "+Inf"]
    for bound, count in zip(bounds, accumulate(point.bucket_counts), strict=True):
        yield f'\n{name}_bucket{{{inner}le="{bound}"}} {count}'
    labels = f"{{{pairs}}}" if pairs else ""
    yield f"\n{name}_sum{labels} {point.sum!r}"
    yield f"\n{name}_count{labels} {point.count}"


def _head(name: str, series: Series) -> str:
    """Give what stands before the value of a series under a name; its memo keeps it."""
    head: str = series.memo.setdefault(name, f"\n{name}{label_text(series.attributes)} ")
    return head


def _created(named: Family, series: Series) -> str:
    labels = label_text(series.attributes)
    return f"\n{named.base}_created{labels} {(series.start_ns or 0) / 1e9!r}"


def _text_head(block: _Block) -> str:
    named = block.family
    kind = "gauge" if named.type == "info" else named.type
    about = _escape(_encodable(block.help))
    said = f"# HELP {named.name} {about}\n" if about else ""
    return f"{said}# TYPE {named.name} {kind}"


def _openmetrics_head(block: _Block) -> str:
    named = block.family
    about = _escape(_encodable(block.help)).replace('"', r"\"")
    unit = f"\n# UNIT {named.base} {named.unit}" if named.unit else ""
    said = f"\n# HELP {named.base} {about}" if about else ""
    return f"# TYPE {named.base} {named.type}{unit}{said}"
