"""What must be remembered between sweeps, and the one function that folds new answers into it.

Pure: `fold(page, batch, ...) -> page`. The ledger has a page for each GPU: its latest readings and
gaps, which questions it refuses, the windows over the driver's ring buffers and the last value of
each counter. Whoever replays the same answers gets the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

from otel_gpu.catalog.forms import Window
from otel_gpu.catalog.judging import LOST, Judging
from otel_gpu.catalog.profiling import CALL as GPM
from otel_gpu.catalog.profiling import highest, integral_of
from otel_gpu.catalog.ranges import bounds, plausible
from otel_gpu.catalog.shape import figure, scaled
from otel_gpu.model import (
    Answer,
    Attributes,
    Code,
    Device,
    Gap,
    Kind,
    Metric,
    Missing,
    Point,
    Query,
    Reading,
    Reason,
    Tier,
)
from otel_gpu.trails import MEANS, Sample, Trail, marked, samples, slid

LASTING = frozenset(
    {
        Code.NOT_SUPPORTED,
        Code.FUNCTION_NOT_FOUND,
        Code.ARGUMENT_VERSION_MISMATCH,
        Code.INVALID_ARGUMENT,
    }
)
"""Refusals that stay: remembered, and tried again once an hour."""

RETRY_S = 3600.0
KEPT_S = 55.0  # under the slow tier's minute, so that its own question is asked
NEAR = 8  # a counter wraps from its last eighth to its first: more than a sweep brings
ENOUGH = 0.9  # of a window must be covered by samples, or its peak is not known


@dataclass(frozen=True, slots=True)
class Batch:
    """The answers of one GPU in one sweep, and when it was asked (Unix ns, monotonic s)."""

    device: Device
    time_ns: int
    read_s: float
    answers: Mapping[Query, Answer]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal that stays: its code, and the monotonic second at which to ask again."""

    code: int
    again_s: float


@dataclass(frozen=True, slots=True)
class Count:
    """The last value of a counter as the driver gave it, where it began to count, its turns.

    The start is known after a reset that was seen; each turn is a wrap that was seen.
    """

    value: float
    start_ns: int | None = None
    turns: int = 0


@dataclass(frozen=True, slots=True)
class Sum:
    """A GPM metric integrated: its integral, the end of its last span, what no span covered."""

    total: float
    end_s: float
    uncovered_s: float
    start_ns: int


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer that serves for a while, so that its question is not asked at every sweep."""

    answer: Answer
    read_s: float

    def serves(self, now_s: float) -> bool:
        """Whether it need not be asked again yet."""
        return now_s - self.read_s < KEPT_S


@dataclass(frozen=True, slots=True)
class Page:
    """All that is remembered of one GPU: readings, gaps and counts by metric name."""

    served: frozenset[Query] = frozenset()
    refused: Mapping[Query, Refusal] = field(default_factory=dict)
    windows: Mapping[Query, Trail] = field(default_factory=dict)
    sums: Mapping[Query, Sum] = field(default_factory=dict)
    kept: Mapping[Query, Kept] = field(default_factory=dict)
    counts: Mapping[tuple[str, Attributes], Count] = field(default_factory=dict)
    readings: Mapping[str, Reading] = field(default_factory=dict)
    gaps: Mapping[str, tuple[Gap, ...]] = field(default_factory=dict)


Ledger = Mapping[str, Page]  # by UUID


def fold(page: Page, batch: Batch, metrics: Sequence[Metric], window_s: float) -> Page:
    """Fold one GPU's answers in: new readings, new gaps, and what they teach about support."""
    page = keeping(learn(page, batch), batch, metrics)
    page = integrated(extend(page, batch, metrics, window_s), batch)
    heard = {query: one.answer for query, one in page.kept.items()}
    heard.update((query, Answer(refusal.code)) for query, refusal in page.refused.items())
    heard.update(batch.answers)
    heard.update(
        (integral_of(query), Answer(0, (one.total, one.uncovered_s, one.start_ns)))
        for query, one in page.sums.items()
    )
    uuid = batch.device.uuid
    readings, gaps, counts = dict(page.readings), dict(page.gaps), dict(page.counts)
    for metric in metrics:
        points, missing = decode(metric, batch.device, heard, page, window_s)
        readings.pop(metric.name, None)
        gaps.pop(metric.name, None)
        if points and metric.kind is Kind.COUNTER:
            points = [counted(counts, metric, point, batch.time_ns) for point in points]
        if points:
            readings[metric.name] = Reading(
                metric, uuid, tuple(points), batch.time_ns, batch.read_s
            )
        if missing:
            gaps[metric.name] = tuple(Gap(metric.name, uuid, one) for one in missing)
    return replace(page, readings=readings, gaps=gaps, counts=counts)


def learn(page: Page, batch: Batch) -> Page:
    """Remember which questions were served and which were refused for good.

    A question that was served and is suddenly an invalid argument tells of a stale handle, not of
    the GPU's abilities, and is not held against it.
    """
    served = {query for query, answer in batch.answers.items() if answer.ok}
    refused = {
        query: Refusal(answer.code, batch.read_s + RETRY_S * spread(batch.device.uuid, query))
        for query, answer in batch.answers.items()
        if answer.code in LASTING
        and not (answer.code == Code.INVALID_ARGUMENT and query in page.served)
    }
    if served <= page.served and not refused and page.refused.keys().isdisjoint(served):
        return page
    still = {query: one for query, one in page.refused.items() if query not in served}
    return replace(
        page,
        served=(page.served | served) - refused.keys(),
        refused={**still, **refused},
    )


def spread(uuid: str, query: Query) -> float:
    """Give a factor of 0.9 to 1.1 that is always the same, so that retries do not come at once."""
    return 0.9 + 0.2 * crc32(f"{uuid} {query}".encode()) / 2**32


def keeping(page: Page, batch: Batch, metrics: Sequence[Metric]) -> Page:
    """Keep the answers to what is asked seldom."""
    seldom = {one for m in metrics if isinstance(m.read, Judging) for one in m.read.seldom}
    fresh = {
        query: Kept(batch.answers[query], batch.read_s)
        for query in seldom & batch.answers.keys()
        if batch.answers[query].ok
    }
    return replace(page, kept={**page.kept, **fresh}) if fresh else page


def extend(page: Page, batch: Batch, metrics: Sequence[Metric], window_s: float) -> Page:
    """Add new samples of the ring buffers to their windows, and let old ones go."""
    windowed = {metric.read.query for metric in metrics if isinstance(metric.read, Window)}
    slides = {
        query: slid(
            page.windows.get(query, Trail()),
            samples(batch.answers[query].value),
            batch.read_s,
            window_s,
        )
        for query in windowed & batch.answers.keys()
    }
    slides |= {
        query: marked(page.windows.get(query, Trail()), answer.value, batch.read_s)
        for query, answer in batch.answers.items()
        if query.call in MEANS and answer.ok
    }
    return replace(page, windows={**page.windows, **slides}) if slides else page


def integrated(page: Page, batch: Batch) -> Page:
    """Add the spans of the GPM metrics to their integrals."""
    spans = {
        query: span
        for query, answer in batch.answers.items()
        if query.call == GPM and answer.ok and (span := sound(query, answer.value))
    }
    if not spans:
        return page
    sums = {query: added(page.sums.get(query), span, batch) for query, span in spans.items()}
    return replace(page, sums={**page.sums, **sums})


def sound(query: Query, value: Any) -> tuple[float, float, float] | None:
    """Read a GPM answer's mean, begin and end; None when it is no such thing, or cannot be."""
    if not isinstance(value, list | tuple) or len(value) != 3:
        return None
    mean, begin_s, end_s = map(figure, value)
    if mean is None or begin_s is None or end_s is None:
        return None
    possible = 0 <= mean <= highest(query) and 0 <= begin_s < end_s
    return (mean, begin_s, end_s) if possible else None


def added(before: Sum | None, span: Sequence[float], batch: Batch) -> Sum:
    """Add one span; the time since the last one's end is not covered, and not made up."""
    mean, begin_s, end_s = span
    area = mean * (end_s - begin_s)
    if before is None:
        start_ns = batch.time_ns - round((batch.read_s - begin_s) * 1e9)
        # The clock of a recorded machine may be ahead; no count begins in the future.
        return Sum(area, end_s, 0.0, min(start_ns, batch.time_ns))
    if begin_s < before.end_s:  # a part of it was added before, and nobody knows how much
        return before
    return Sum(
        total=before.total + area,
        end_s=end_s,
        uncovered_s=before.uncovered_s + (begin_s - before.end_s),
        start_ns=before.start_ns,
    )


def decode(
    metric: Metric,
    device: Device,
    heard: Mapping[Query, Answer],
    page: Page,
    window_s: float,
) -> tuple[list[Point], list[Missing]]:
    """Turn answers into the points of one metric that can be true, and say why others are not."""
    points, missing = metric.read.read(device, heard)
    if isinstance(metric.read, Window) and not missing:
        trail = page.windows.get(metric.read.query, Trail())
        points, missing = folded(metric.read, trail.samples, window_s)
    return judged(metric, points, missing)


def folded(
    read: Window, samples: tuple[Sample, ...], window_s: float
) -> tuple[list[Point], list[Missing]]:
    """Fold a window to one value, if enough of it was covered by samples."""
    covered = len(samples) * read.period_s / window_s
    if covered < ENOUGH:
        detail = f"{read.query}: samples cover {covered:.0%} of the last {window_s:g} s"
        return [], [Missing(Reason.COVERAGE, detail)]
    value = (max if read.fold == "max" else min)([value for _, value in samples])
    return [Point(scaled(value, read.scale))], []


def judged(
    metric: Metric, points: list[Point], missing: list[Missing]
) -> tuple[list[Point], list[Missing]]:
    """Let through what is within the metric's range, as the type that its unit asks for."""
    limits = bounds(metric)
    number = int if metric.integer else float
    good: list[Point] = []
    bad: list[Missing] = []
    for point in points:
        # A large whole number may be rounded up, and out of the range, when it becomes a float.
        if plausible(point.value, limits) and plausible(value := number(point.value), limits):
            good.append(Point(value, point.attributes, point.start_ns))
        else:
            detail = f"{point.value!r} {metric.unit} cannot be true"
            bad.append(Missing(Reason.INVALID, detail, point.attributes))
    return good, missing + bad


def counted(
    counts: dict[tuple[str, Attributes], Count], metric: Metric, point: Point, time_ns: int
) -> Point:
    """Note a counter's value; one that went back wrapped, or began again since the last sweep."""
    key = (metric.name, point.attributes)
    before = counts.get(key)
    turns, start_ns = (before.turns, before.start_ns) if before else (0, point.start_ns)
    if before and point.value < before.value:
        wrapped = is_wrap(before.value, point.value, metric.wraps)
        turns, start_ns = (turns + 1, start_ns) if wrapped else (0, time_ns)
    elif turns and point.value >= metric.wraps:  # it has more bits: what seemed a wrap was a reset
        turns, start_ns = 0, time_ns
    counts[key] = Count(point.value, start_ns, turns)
    return point._replace(value=point.value + turns * metric.wraps, start_ns=start_ns)


def is_wrap(before: float, now: float, wraps: int) -> bool:
    """Whether a counter went from near its top to near 0; from anywhere else it was reset."""
    near = wraps // NEAR
    return wraps - near <= before < wraps and now < near


def renewed(page: Page) -> Page:
    """Forget what a GPU refuses and what is read once: a new enumeration probes both anew."""
    readings = {
        name: reading
        for name, reading in page.readings.items()
        if reading.metric.tier is not Tier.STATIC
    }
    return replace(page, served=frozenset(), refused={}, kept={}, readings=readings)


def is_lost(batch: Batch) -> bool:
    """Whether the GPU answered nothing, and said that it is lost.

    `unknown error` says so too (nvml.h), but not when it is what a single question gets.
    """
    codes = [answer.code for answer in batch.answers.values()]
    if Code.SUCCESS in codes:
        return False
    return not LOST.isdisjoint(codes) or codes.count(Code.UNKNOWN) > 1


def is_stale(page: Page, batch: Batch) -> bool:
    """Whether a MIG instance's handle is old: what was served is an invalid argument now (nvml.h).

    A new enumeration forgets what was served, so no question asks for one twice in a row.
    """
    return batch.device.is_instance and any(
        answer.code == Code.INVALID_ARGUMENT and query in page.served
        for query, answer in batch.answers.items()
    )


def emptied(page: Page, device: Device, metrics: Sequence[Metric], missing: Missing) -> Page:
    """End every series of a GPU that does not answer. What it counted before is kept.

    Of a GPU that is lost, that is known: its verdicts are shown until it is back.
    """
    known = {
        metric.name: Reading(metric, device.uuid, metric.read.lost, 0, math.inf)
        for metric in metrics
        if missing.reason is Reason.LOST and isinstance(metric.read, Judging)
    }
    gaps = {
        metric.name: (Gap(metric.name, device.uuid, missing),)
        for metric in metrics
        if metric.name not in known
    }
    return replace(page, windows={}, kept={}, readings=known, gaps=gaps)
