"""What the samples of a run say: does the agent grow?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from bench.figure import Figure, at_most
from bench.soak.proc import Sample
from bench.soak.trend import Series, highest, trend, typical
from bench.soak.windows import CALM_S, SETTLE_S, Timeline

MOST_SLOPE = 1.0  # MB an hour
MOST_GROWN = 3.0  # MB
MOST_SETTLING = 10.0  # MB, in the first minutes, in which the heap finds its size
MOST_OBJECTS = 30_000  # blocks; a calm differs from another by up to 20,000
YOUNG_S = 5.0  # of a worker: it still opens things
LEAST_LIFE_S = 30.0  # of a worker that is judged
LOOK_S = 10.0


def agent(samples: Sequence[Sample], timeline: Timeline) -> Iterator[Figure]:
    """Judge the agent: memory from the first calm to the last, handles and threads in the calms."""
    memory = of(samples, lambda one: one.rss_mb)
    calms = measured(memory, timeline)
    if len(calms) < 2:
        yield Figure("calms measured", len(calms), None, "", ">= 2", holds=False)
        return
    yield figure("memory, first calm", calms[0], "MB RSS")
    most = MOST_GROWN if timeline.settled else MOST_SETTLING
    yield at_most("memory grown since", calms[-1] - calms[0], most, "MB")
    yield slope(memory, timeline)
    for name, series in {
        "anonymous memory": of(samples, lambda one: one.anonymous_mb),
        "proportional set": of(samples, lambda one: one.pss_mb),
    }.items():
        if found := measured(series, timeline):
            yield figure(f"{name} grown", found[-1] - found[0], "MB", f"from {found[0]:.1f}")
    yield from flat("handles", of(samples, lambda one: one.handles), timeline)
    yield from flat("threads", of(samples, lambda one: one.threads), timeline)


def slope(memory: Series, timeline: Timeline) -> Figure:
    """Judge the slope over the last half of the time after the warm-up."""
    half_s = (timeline.warm_s + timeline.seconds) / 2
    found = trend([one for one in memory if one[0] >= half_s])
    if found is None:
        return Figure("memory slope", 0.0, None, "MB/h", "measured", holds=False)
    minutes = (timeline.seconds - half_s) / 60
    note = f"over {minutes:.1f} min; {MOST_SLOPE:g} and {found.noise:.2f} of noise"
    if not timeline.settled:
        return figure("memory slope", found.slope, "MB/h", f"{note}; not judged")
    return at_most("memory slope", found.slope, MOST_SLOPE + found.noise, "MB/h", note)


def objects(blocks: Sequence[int]) -> Iterator[Figure]:
    """Judge the blocks that Python's objects take: the last calm against the first."""
    if len(blocks) < 2:
        yield Figure("objects grown", 0.0, None, "blocks", "measured", holds=False)
        return
    note = " ".join(map(str, blocks))
    yield at_most("objects grown", blocks[-1] - blocks[0], MOST_OBJECTS, "blocks", note)


def flat(name: str, series: Series, timeline: Timeline) -> Iterator[Figure]:
    """Judge what has to be the same in every calm: the last against the highest of the first half.

    In the storms clients come and go, so that their peaks are stated only.
    """
    calms = measured(series, timeline)
    if len(calms) < 2:
        yield Figure(f"{name} in calm", 0.0, None, "", "measured", holds=False)
        return
    early = max(calms[: len(calms) // 2])
    seen = " ".join(f"{calm:g}" for calm in calms)
    yield at_most(f"{name} in calm", calms[-1], early, "", seen)
    whole_s = timeline.seconds - timeline.warm_s
    quarter_s = [timeline.warm_s + place * whole_s / 4 for place in range(5)]
    second, last = (highest(series, *quarter_s[at : at + 2]) for at in (1, 3))
    yield figure(f"{name}, peak", last, "", f"{second:g} in the second quarter")


def workers(samples: Sequence[Sample]) -> Iterator[Figure]:
    """Judge each worker's handles and threads from its first seconds to its last."""
    grown: dict[str, list[float]] = {"handles": [], "threads": []}
    memory: list[tuple[float, float]] = []
    generations = [list(group) for _, group in groupby(samples, attrgetter("pid"))]
    for life in generations:
        first_s, last_s = life[0].now_s, life[-1].now_s
        if last_s - first_s < LEAST_LIFE_S:
            continue
        for name, found in grown.items():
            series = of(life, attrgetter(name))
            found.append(growth(series) or 0.0)
        memory.append((last_s - first_s, growth(of(life, lambda one: one.rss_mb)) or 0.0))
    note = f"{len(memory)} of {len(generations)} workers lived for {LEAST_LIFE_S:g} s"
    for name, found in grown.items():
        yield at_most(f"worker {name} grown", max(found, default=0.0), 0.0, "", note)
    if memory:
        lived_s, most = max(memory)
        yield figure("worker memory grown", most, "MB RSS", f"in {lived_s:.0f} s, the longest life")


def growth(series: Series) -> float | None:
    """Give the growth from after the first seconds to the last."""
    first_s, last_s = series[0][0] + YOUNG_S, series[-1][0]
    early = typical(series, first_s, first_s + LOOK_S)
    late = typical(series, last_s - LOOK_S, last_s + 1)
    return None if early is None or late is None else late - early


def measured(series: Series, timeline: Timeline) -> list[float]:
    """Give the median of each calm, after it has settled."""
    parts = [(begin_s + SETTLE_S, begin_s + CALM_S) for begin_s in timeline.calms_s]
    found = [typical(series, *part) for part in parts]
    return [one for one in found if one is not None]


def of(samples: Sequence[Sample], what: Callable[[Sample], float | None]) -> Series:
    """Give one of the figures of samples over time."""
    return [(one.now_s, value) for one in samples if (value := what(one)) is not None]


def figure(name: str, value: float, unit: str, note: str = "") -> Figure:
    """State a value that has no limit."""
    return Figure(name, value, None, unit, "", holds=True, note=note)
