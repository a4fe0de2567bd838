"""What is remembered of the driver's ring buffers, so that each sample counts once. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from otel_gpu.catalog.shape import figure

Sample = tuple[int, float]  # microseconds of Unix time, raw value

MEANS = frozenset({"nvmlDeviceGetProcessesUtilizationInfo", "nvmlDeviceGetProcessUtilization"})
"""Calls whose answer is a mean since the moment that is asked for; since 0, of the whole buffer."""


@dataclass(frozen=True, slots=True)
class Trail:
    """The samples of a trailing window, oldest first, and the monotonic second of the last gain."""

    samples: tuple[Sample, ...] = ()
    gained_s: float = 0.0


def samples(ring: Any) -> list[Sample]:
    """Give what a ring buffer holds, oldest first; what is no sample (a sentinel, NaN) is not."""
    entries = ring if isinstance(ring, list | tuple) else ()
    pairs = [entry for entry in entries if isinstance(entry, list | tuple) and len(entry) == 2]
    known = {figure(at): figure(value) for at, value in pairs}
    return sorted(
        (int(at), value) for at, value in known.items() if at is not None and value is not None
    )


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
    return Trail(held[bisect_right(held, edge, key=itemgetter(0)) :], gained_s)


def marked(trail: Trail, told: Any, now_s: float) -> Trail:
    """Remember until when a list of processes goes, so that the next mean begins there."""
    entries = told if isinstance(told, list | tuple) else ()
    times = [
        int(at)
        for entry in entries
        if isinstance(entry, dict) and (at := figure(entry.get("timeStamp"))) is not None
    ]
    return Trail(((max(times), 0.0),), now_s) if times else trail
