"""Metrics, answers and pages in few words, for the tests of the ledger."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from otel_gpu.catalog.reading import call, split, window
from otel_gpu.ledger import (
    Batch,
    Page,
    fold,
)
from otel_gpu.model import (
    Answer,
    Code,
    Kind,
    Metric,
    Query,
    Reason,
    Tier,
)
from tests.machine import gpu

GPU = gpu()
WINDOW_S = 15.0

POWER = Metric(
    name="hw.power", kind=Kind.GAUGE, unit="W", brief="Power.", read=call("power", scale=1e-3)
)
ENERGY = Metric(
    name="hw.energy", kind=Kind.COUNTER, unit="J", brief="Energy.", read=call("energy", scale=1e-3)
)
REPLAYS = Metric(
    name="nvidia.gpu.pcie.replays",
    kind=Kind.COUNTER,
    unit="{replay}",
    brief="Replays.",
    read=split("way", {"in": call("in"), "out": call("out")}),
    integer=True,
)
PEAK = Metric(
    name="nvidia.gpu.power.peak",
    kind=Kind.GAUGE,
    unit="W",
    brief="Peak.",
    read=window("ring", fold="max", scale=1e-3),
)
LOW = replace(PEAK, name="nvidia.gpu.power.low", read=window("ring", fold="min", scale=1e-3))
LIMIT = replace(POWER, name="hw.gpu.memory.limit", read=call("limit"), tier=Tier.STATIC)


def batch(at_s: float = 0.0, **answers: Any) -> Batch:
    """Answer each named function, with a value or with an `Answer` as it is."""
    heard = {
        Query(name): value if isinstance(value, Answer) else Answer(Code.SUCCESS, value)
        for name, value in answers.items()
    }
    return Batch(GPU, round(at_s * 1e9), at_s, heard)


def refused(*names: str, code: int = Code.NOT_SUPPORTED, at_s: float = 0.0) -> Batch:
    return batch(at_s, **{name: Answer(code) for name in names})


def folded(page: Page, *batches: Batch, metrics: Sequence[Metric] = (POWER,)) -> Page:
    for one in batches:
        page = fold(page, one, metrics, WINDOW_S)
    return page


def values(page: Page, name: str) -> list[float]:
    return [point.value for point in page.readings[name].points] if name in page.readings else []


def reasons(page: Page, name: str) -> list[Reason]:
    return [gap.missing.reason for gap in page.gaps.get(name, ())]


def ring(*, until_s: float, count: int = 119, high: int = 600_000) -> list[list[int]]:
    """Give a ring of samples 20 ms apart, the last one at `until_s`; each value tells its time."""
    last = round(until_s * 50)
    return [[place * 20_000, high + place] for place in range(last - count + 1, last + 1)]
