"""Snapshots with as many processes and metrics as a test likes, and what of them is collected."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from otel_gpu.attribution import allocation
from otel_gpu.budgets.series import Bounds
from otel_gpu.catalog.agent import DEVICE_UP, GPM_UNCOVERED_TIME, SCRAPE_DURATION
from otel_gpu.catalog.info import ALLOCATION
from otel_gpu.catalog.processes import PROCESS_MEMORY, PROCESS_UTILIZATION
from otel_gpu.instruments import Instruments, Supply
from otel_gpu.model import Kind, Metric, Owner, Point, Profile, Reading, Snapshot
from otel_gpu.pulse import device_up
from tests.machine import gpu
from tests.observing import POWER

GPUS = {f"GPU-{n}": replace(gpu(), uuid=f"GPU-{n}", index=n, minor=n) for n in range(3)}
CORE = replace(POWER, profile=Profile.CORE)
FULL = replace(POWER, name="hw.full", profile=Profile.FULL)
STANDARD = replace(POWER, name="hw.standard", profile=Profile.STANDARD)
METRICS = (
    FULL,
    STANDARD,
    CORE,
    PROCESS_MEMORY,
    PROCESS_UTILIZATION,
    ALLOCATION,
    GPM_UNCOVERED_TIME,
    DEVICE_UP,
    SCRAPE_DURATION,
)
OWN = 2 * len(GPUS) + 1
"""Points of the agent's own metrics here; a histogram is one."""

SUPPLIES: Mapping[str, Supply] = {ALLOCATION.name: allocation, DEVICE_UP.name: device_up}

Uses = Mapping[tuple[str, int], int]
"""Memory by GPU and pid."""

Seen = dict[str, dict[frozenset[tuple[str, object]], float]]
"""What is collected: values by metric and attributes."""


def pid(number: int) -> tuple[tuple[str, int], ...]:
    return (("process.pid", number),)


def memory(uses: Uses, uuid: str = "GPU-0") -> Reading:
    points = [Point(size, pid(number)) for (gpu, number), size in uses.items() if gpu == uuid]
    return Reading(PROCESS_MEMORY, uuid, tuple(points), 1, 0.0)


def utilization(uses: Uses, uuid: str = "GPU-0") -> Reading:
    points = [
        Point(size / 1e3, (*pid(number), ("nvidia.gpu.engine", engine)))
        for (gpu, number), size in uses.items()
        for engine in ("sm", "dram")
        if gpu == uuid
    ]
    return Reading(PROCESS_UTILIZATION, uuid, tuple(points), 1, 0.0)


def published(uses: Uses, parts: int = 1, owners: int = 1) -> Snapshot:
    """Publish three GPUs with these processes, so many points a metric, so many owners a GPU."""
    readings = []
    for uuid in GPUS:
        points = tuple(Point(float(part), (("part", part),)) for part in range(parts))
        readings += [Reading(metric, uuid, points, 1, 0.0) for metric in (FULL, STANDARD, CORE)]
        readings.append(Reading(GPM_UNCOVERED_TIME, uuid, (Point(0.0),), 1, 0.0))
        readings += [memory(uses, uuid), utilization(uses, uuid)]
    held = tuple(Owner((("k8s.pod.name", f"train-{n}"),)) for n in range(owners))
    return Snapshot(
        readings=tuple(readings),
        devices=GPUS,
        up=dict.fromkeys(GPUS, True),
        owners=dict.fromkeys(GPUS, held),
    )


class Collecting:
    """Instruments with bounds, on a snapshot that the test changes."""

    def __init__(self, snapshot: Snapshot, **bounds: Any) -> None:
        self.snapshot = snapshot
        self.metrics: Sequence[Metric] = METRICS
        self.instruments = Instruments(
            METRICS,
            lambda: self.snapshot,
            every={},
            supplies=SUPPLIES,
            bounds=Bounds(**bounds),
            clock=float,
        )

    def seen(self) -> Seen:
        return {
            metric.name: {
                frozenset((one.attributes or {}).items()): one.value
                for one in self.instruments.observe(metric)
            }
            for metric in self.metrics
            if metric.kind is not Kind.HISTOGRAM
        }

    @property
    def dropped(self) -> Mapping[str, int]:
        return self.instruments.budget.dropped


def size(seen: Seen) -> int:
    """Count the series of a collection, a histogram as one."""
    return sum(map(len, seen.values())) + 1


def pids(points: Iterable[frozenset[tuple[str, object]]]) -> set[tuple[object, object]]:
    """Give the processes that have a series: (GPU, pid)."""
    found = map(dict, points)
    return {(one["hw.id"], one["process.pid"]) for one in found if "process.pid" in one}


USES = st.dictionaries(
    st.tuples(st.sampled_from([*GPUS]), st.integers(1, 40)), st.integers(0, 1000), max_size=60
)
