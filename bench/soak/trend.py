"""How a figure went over time, told in ways that a single odd sample does not change. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import median, quantiles
from typing import NamedTuple

HOUR_S = 3600.0
BLOCK_S = 10.0
MOST_BLOCKS = 50

Series = Sequence[tuple[float, float]]
"""Seconds and values, in order."""


class Trend(NamedTuple):
    """A slope per hour, and what noise alone can make look like one in the same time, per hour."""

    slope: float
    noise: float


def blocks(series: Series) -> Series:
    """Give the medians of blocks of 10 s or, of a long series, of a fiftieth of it."""
    if not series:
        return []
    first_s = series[0][0]
    length_s = max(BLOCK_S, (series[-1][0] - first_s) / MOST_BLOCKS)
    gathered: dict[int, list[tuple[float, float]]] = {}
    for now_s, value in series:
        gathered.setdefault(int((now_s - first_s) / length_s), []).append((now_s, value))
    return [
        (median(now_s for now_s, _ in block), median(value for _, value in block))
        for block in gathered.values()
    ]


def trend(series: Series) -> Trend | None:
    """Give the Theil-Sen slope of the blocks: the median of the slopes of all pairs.

    The noise is the spread of the blocks about that line (from the 10th to the 90th percentile)
    over the length of the series: what one step of that size in it would add to the slope. None:
    there are fewer than four blocks.
    """
    points = blocks(series)
    if len(points) < 4:
        return None
    slope = median(
        (late - early) / (to - at) for (at, early), (to, late) in combinations(points, 2)
    )
    spread = quantiles((value - slope * now_s for now_s, value in points), n=10)
    length_s = points[-1][0] - points[0][0]
    return Trend(slope * HOUR_S, (spread[-1] - spread[0]) / length_s * HOUR_S)


def typical(series: Series, since_s: float, until_s: float) -> float | None:
    """Give the median of a part; None where nothing was measured in it."""
    values = [value for now_s, value in series if since_s <= now_s < until_s]
    return median(values) if values else None


def highest(series: Series, since_s: float, until_s: float) -> float:
    """Give the highest of a part; 0 where nothing was measured in it."""
    return max((value for now_s, value in series if since_s <= now_s < until_s), default=0.0)
