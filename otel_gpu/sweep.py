"""Every GPU x every metric that is due: what to ask, and the snapshot that the answers make. Pure.

`questions` says what a sweep asks, `ledger.fold` takes the answers, `shown` gives the outcome.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from otel_gpu.catalog.forms import Supplied, united
from otel_gpu.ledger import Ledger, Page
from otel_gpu.model import Device, Gap, Metric, Missing, Query, Reading, Reason, Tier

OLDEST_TIERS = 3.0
OLDEST_S = 10.0

Intervals = Mapping[str, float]  # seconds between reads, by metric name; a static one has none


def applicable(metrics: Iterable[Metric], device: Device) -> tuple[Metric, ...]:
    """Give the metrics that are read on this device: not the agent's own, nor its parent's."""
    return tuple(
        metric
        for metric in metrics
        if not isinstance(metric.read, Supplied) and (metric.on_instance or not device.is_instance)
    )


def questions(
    metrics: Sequence[Metric], device: Device, page: Page, now_s: float
) -> tuple[Query, ...]:
    """Give what to ask one GPU for these metrics, each once, without what it refuses for good."""
    wanted = united(metric.read.wanted(device, page.served.__contains__) for metric in metrics)
    return tuple(
        query
        for query in wanted
        if (query not in page.refused or page.refused[query].again_s <= now_s)
        and (query not in page.kept or not page.kept[query].serves(now_s))
    )


def since(query: Query, page: Page) -> Query:
    """Ask a ring buffer only for what came after the samples that are held."""
    trail = page.windows.get(query)
    if trail is None or not trail.samples:
        return query
    return Query(query.call, (*query.args[:-1], trail.samples[-1][0]))


def intervals(
    metrics: Iterable[Metric],
    seconds: Mapping[Tier, float],
    override: Callable[[str], float | None],
) -> Intervals:
    """Give each metric's seconds between reads: its own if configured, else its tier's."""
    every = {metric.name: override(metric.name) or seconds.get(metric.tier) for metric in metrics}
    return {name: period for name, period in every.items() if period is not None}


def oldest(metric: Metric, every: Intervals) -> float:
    """Give the age in seconds at which a reading is no longer shown; static ones do not age."""
    if metric.name not in every:
        return math.inf
    return max(OLDEST_S, OLDEST_TIERS * every[metric.name])


def shown(
    ledger: Ledger, every: Intervals, now_s: float
) -> tuple[tuple[Reading, ...], tuple[Gap, ...]]:
    """Give what is fresh. What has grown stale is not shown as live: it becomes a gap."""
    fresh: list[Reading] = []
    gaps: list[Gap] = []
    for page in ledger.values():
        gaps += (gap for several in page.gaps.values() for gap in several)
        for reading in page.readings.values():
            age = now_s - reading.read_s
            if age <= oldest(reading.metric, every):
                fresh.append(reading)
            else:
                missing = Missing(Reason.STALE, f"last read {age:.0f} s ago")
                gaps.append(Gap(reading.metric.name, reading.device, missing))
    return tuple(fresh), tuple(gaps)
