"""What must be remembered between sweeps, and the one function that folds new answers into it.

Pure: `fold(page, batch, ...) -> page`. The ledger has a page for each GPU: its latest readings and
gaps, which questions it refuses, the windows over the driver's ring buffers and the last value of
each counter. Whoever replays the same answers gets the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

from otel_gpu.catalog.forms import Window, number, scaled
from otel_gpu.catalog.ranges import bounds, plausible
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

LASTING = frozenset(
    {
        Code.NOT_SUPPORTED,
        Code.FUNCTION_NOT_FOUND,
        Code.ARGUMENT_VERSION_MISMATCH,
        Code.INVALID_ARGUMENT,
    }
)
"""Refusals that stay: remembered, and tried again once an hour."""

LOST = frozenset({Code.GPU_IS_LOST, Code.RESET_REQUIRED})

RETRY_S = 3600.0
ENOUGH = 0.9  # of a window must be covered by samples, or its peak is not known

Sample = tuple[int, float]  # microseconds of Unix time, raw value


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
    """The last value of a counter, and where it began to count after a reset that was seen."""

    value: float
    start_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Trail:
    """The samples of a trailing window, oldest first, and the monotonic second of the last gain."""

    samples: tuple[Sample, ...] = ()
    gained_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Page:
    """All that is remembered of one GPU: readings, gaps and counts by metric name."""

    served: frozenset[Query] = frozenset()
    refused: Mapping[Query, Refusal] = field(default_factory=dict)
    windows: Mapping[Query, Trail] = field(default_factory=dict)
    counts: Mapping[tuple[str, Attributes], Count] = field(default_factory=dict)
    readings: Mapping[str, Reading] = field(default_factory=dict)
    gaps: Mapping[str, tuple[Gap, ...]] = field(default_factory=dict)


Ledger = Mapping[str, Page]  # by UUID


def fold(page: Page, batch: Batch, metrics: Sequence[Metric], window_s: float) -> Page:
    """Fold one GPU's answers in: new readings, new gaps, and what they teach about support."""
    page = extend(learn(page, batch), batch, metrics, window_s)
    heard = {query: Answer(refusal.code) for query, refusal in page.refused.items()}
    heard.update(batch.answers)
    uuid = batch.device.uuid
    readings, gaps, counts = dict(page.readings), dict(page.gaps), dict(page.counts)
    for metric in metrics:
        points, missing = decode(metric, batch.device, heard, page, window_s)
        readings.pop(metric.name, None)
        gaps.pop(metric.name, None)
        if points and metric.kind is Kind.COUNTER:
            points = [counted(counts, metric.name, point, batch.time_ns) for point in points]
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
    return replace(page, windows={**page.windows, **slides}) if slides else page


def samples(ring: Any) -> list[Sample]:
    """Give what a ring buffer holds, oldest first; what is no sample (a sentinel, NaN) is not."""
    entries = ring if isinstance(ring, list | tuple) else ()
    pairs = ((number(entry, (0,)), number(entry, (1,))) for entry in entries)
    known = {int(at): value for at, value in pairs if at is not None and value is not None}
    return sorted(known.items())


def slid(trail: Trail, ring: Sequence[Sample], now_s: float, window_s: float) -> Trail:
    """Give the samples of the trailing window, without those of the ring that were held already.

    While the ring gains nothing the window slides on all the same, or a peak would stay for ever.
    """
    if ring and trail.samples and ring[-1][0] < trail.samples[-1][0]:
        trail = Trail()  # the clock was set back: what was held is of another time
    last = trail.samples[-1][0] if trail.samples else 0
    new = tuple(sample for sample in ring if sample[0] > last)
    gained_s = now_s if new else trail.gained_s
    held = trail.samples + new
    edge = held[-1][0] - (window_s - (now_s - gained_s)) * 1e6 if held else 0
    return Trail(tuple(sample for sample in held if sample[0] > edge), gained_s)


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
    value = (max if read.fold == "max" else min)(value for _, value in samples)
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
        if plausible(point.value, limits):
            good.append(point._replace(value=number(point.value)))
        else:
            detail = f"{point.value!r} {metric.unit} cannot be true"
            bad.append(Missing(Reason.INVALID, detail, point.attributes))
    return good, missing + bad


def counted(
    counts: dict[tuple[str, Attributes], Count], name: str, point: Point, time_ns: int
) -> Point:
    """Note a counter's value; one that went back began again between the last sweep and this."""
    key = (name, point.attributes)
    before = counts.get(key)
    start_ns = before.start_ns if before else None
    if before and point.value < before.value:
        start_ns = time_ns
    counts[key] = Count(point.value, start_ns)
    return point._replace(start_ns=start_ns)


def renewed(page: Page) -> Page:
    """Forget what a GPU refuses and what is read once: a new enumeration probes both anew."""
    readings = {
        name: reading
        for name, reading in page.readings.items()
        if reading.metric.tier is not Tier.STATIC
    }
    return replace(page, served=frozenset(), refused={}, readings=readings)


def is_lost(batch: Batch) -> bool:
    """Whether the GPU answered nothing, and said that it is lost.

    `unknown error` says so too (nvml.h), but not when it is what a single question gets.
    """
    codes = [answer.code for answer in batch.answers.values()]
    if Code.SUCCESS in codes:
        return False
    return not LOST.isdisjoint(codes) or codes.count(Code.UNKNOWN) > 1


def emptied(page: Page, device: Device, metrics: Sequence[Metric], missing: Missing) -> Page:
    """End every series of a GPU that does not answer. What it counted before is kept."""
    gaps = {metric.name: (Gap(metric.name, device.uuid, missing),) for metric in metrics}
    return replace(page, windows={}, readings={}, gaps=gaps)
