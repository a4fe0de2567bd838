"""What holds the clocks, the ring of power samples, memory in use, and GPM over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from otel_gpu.model import Query
from tests.fake_nvml.facts import INTEGRALS, METRIC, Thing
from tests.fake_nvml.machine import Values
from tests.fake_nvml.told import Lines, Made, Range, Told, made, on_gpus

REASONS = {
    0x1: "idle",
    0x2: "app_clocks",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal",
    0x40: "hw_thermal",
    0x80: "hw_power_brake",
    0x100: "display",
}
"""nvml.h, nvmlClocksEventReason*."""


@on_gpus
def clock_reasons(_board: str, turn: int) -> tuple[Lines, Sequence[Made]]:
    """Have some reasons hold the clocks; the older functions, with others, are there as well."""
    lines: dict[str, Values] = {}
    points: list[Made] = []
    for ahead, kind in enumerate(("Event", "Throttle"), start=1):
        # Over the rounds, each reason has its own pattern.
        holding = [bit for place, bit in enumerate(REASONS) if (place + ahead) >> turn % 4 & 1]
        now, known = (
            Query(f"nvmlDeviceGet{which}Clocks{kind}Reasons") for which in ("Current", "Supported")
        )
        lines |= {now.call: sum(holding), known.call: sum(REASONS)}
        points += [
            made(f"clock reason status | {name}", int(bit in holding), now, known)
            for bit, name in REASONS.items()
        ]
    return lines, points


@on_gpus
def power_ring(_board: str, turn: int) -> tuple[Lines, Sequence[Made]]:
    """Fill the ring of power samples (milliwatts, 20 ms apart) over a window of 15 s.

    The highest and the lowest stand near its end: the window has moved on when it is looked at.
    """
    ring = Query("nvmlDeviceGetSamples", (0, 0))
    first_us = (1_796_000_000 + 20 * turn) * 10**6
    low = 100_001 + 1000 * turn
    high = low + 2 * (turn + 1)
    watts = {740: low, 745: high}
    samples = [
        {"timeStamp": first_us + 20_000 * place, "uint": watts.get(place, low + 1)}
        for place in range(750)
    ]
    return {"nvmlDeviceGetSamples(0)": samples}, [
        made("power peak", high / 1000, ring),
        made("power low", low / 1000, ring),
    ]


def memory_fraction(_board: str, _turn: int) -> tuple[Lines, Sequence[Made]]:
    """Divide the memory that is used by all of it."""
    memory = Query("nvmlDeviceGetMemoryInfo_v2")

    def used(told: Told) -> float | None:
        if memory not in told.offered:
            return None
        return float(Fraction(told.value(memory, "used"), told.value(memory, "total")))

    return {}, [Made(Thing.of("memory utilization"), frozenset({memory}), used)]


def integrals(board: str, _turn: int) -> tuple[Lines, Sequence[Made]]:
    """Integrate GPM over time: how long the spans were, `spans` in judging.py finds out."""
    covered = Query(METRIC, (1,))
    found = [source for source in INTEGRALS if board in source.boards]
    anything = Range(0, math.inf)
    points = [Made(one.thing, frozenset({one.query}), lambda _: anything) for one in found]
    if found:
        thing = Thing.of("gpm uncovered time")
        points.append(Made(thing, frozenset({covered}), lambda _: anything))
    return {}, points
