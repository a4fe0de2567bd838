"""Snapshots and instruments in few words: a GPU, an instance of it, and who may hold them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from otel_gpu import pulse
from otel_gpu.attribution import allocation
from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.processes import PROCESS_MEMORY
from otel_gpu.catalog.reading import call
from otel_gpu.instruments import Instruments, Supply
from otel_gpu.model import (
    Device,
    Kind,
    Metric,
    Owner,
    Point,
    Reading,
    Series,
    Snapshot,
)
from otel_gpu.points import SeriesObservation
from tests.machine import gpu, instance

GPU = replace(gpu(), fans=2)
SLICE = instance(GPU)
POD = Owner(
    (("k8s.namespace.name", "research"), ("k8s.pod.name", "train-0")), (("k8s.pod.uid", "7f6c"),)
)
OTHER = Owner((("k8s.namespace.name", "research"), ("k8s.pod.name", "train-1")))

POWER = Metric(
    name="hw.power",
    kind=Kind.GAUGE,
    unit="W",
    brief="Power.",
    read=call("power"),
    owner=True,
    constant=(("hw.type", "gpu"),),
)
ENERGY = replace(POWER, name="hw.energy", kind=Kind.COUNTER, unit="J", owner=False)
PROCESSES = replace(POWER, name=PROCESS_MEMORY.name, attributes=PROCESS_MEMORY.attributes)
ALLOCATION, UP, MISSING = (
    metric
    for metric in CATALOG
    if metric.name in {"nvidia.gpu.allocation", "otel_gpu.device.up", "otel_gpu.reading.missing"}
)
SUPPLIES: Mapping[str, Supply] = {
    "nvidia.gpu.allocation": allocation,
    "otel_gpu.nvml.up": pulse.nvml_up,
    "otel_gpu.device.up": pulse.device_up,
    "otel_gpu.reading.missing": pulse.reading_missing,
}


def reading(metric: Metric, *points: Point, at_s: float = 0.0, device: Device = GPU) -> Reading:
    return Reading(metric, device.uuid, points, 1, at_s)


def snapshot(*readings: Reading, **more: Any) -> Snapshot:
    devices = {GPU.uuid: GPU, SLICE.uuid: SLICE}
    known = Snapshot(readings=readings, devices=devices, up=dict.fromkeys(devices, True))
    return replace(known, **more)


class Rig:
    """Instruments on a snapshot and a clock that the test moves."""

    def __init__(
        self, *readings: Reading, metrics: Iterable[Metric] = (POWER, ENERGY), **more: Any
    ) -> None:
        self.snapshot = snapshot(*readings, **more)
        self.now_s = 0.0
        self.instruments = Instruments(
            tuple(metrics),
            lambda: self.snapshot,
            every={"hw.power": 1.0},
            supplies=SUPPLIES,
            clock=lambda: self.now_s,
        )

    def seen(self, metric: Metric) -> list[tuple[float, Mapping[str, object]]]:
        return [(o.value, dict(o.attributes or {})) for o in self.instruments.observe(metric)]

    def series(self, metric: Metric) -> list[Series]:
        observed = self.instruments.observe(metric)
        return [one.series for one in observed if isinstance(one, SeriesObservation)]
