"""What a sweep saw, in the words of attribution: processes to look up, and use to charge. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from otel_gpu.attribution import Ownership, View
from otel_gpu.attribution.workloads import Energy, Use
from otel_gpu.catalog.power import ENERGY
from otel_gpu.catalog.processes import PROCESS_MEMORY, PROCESS_UTILIZATION
from otel_gpu.model import AttributeValue, Device, Gap, Owner, Reading, Reason

PID, ENGINE = "process.pid", "nvidia.gpu.engine"


def view(devices: Sequence[Device], readings: Iterable[Reading], gaps: Iterable[Gap]) -> View:
    """Give what sources are shown: all GPUs, and the pids that the driver listed on each."""
    pids = {
        reading.device: tuple(
            int(named[PID]) for point in reading.points if PID in (named := dict(point.attributes))
        )
        for reading in readings
        if reading.metric.name == PROCESS_MEMORY.name
    }
    hidden = (
        gap.missing.detail
        for gap in gaps
        if gap.metric == PROCESS_MEMORY.name and gap.missing.reason is Reason.PID_NAMESPACE
    )
    return View(devices, pids, next(hidden, ""))


def uses(devices: Iterable[Device], readings: Iterable[Reading], ownership: Ownership) -> list[Use]:
    """Give each GPU's energy, its owners, and how busy their processes kept its SMs."""
    energy: dict[str, Energy] = {}
    busy: dict[str, Mapping[Owner | None, float]] = {}
    for reading in readings:
        if reading.metric.name == ENERGY.name and reading.points:
            point = reading.points[0]
            energy[reading.device] = Energy(point.value, point.start_ns, reading.read_s)
        elif reading.metric.name == PROCESS_UTILIZATION.name:
            busy[reading.device] = _busy(reading, ownership)
    return [
        Use(
            device,
            ownership.owners.get(device.uuid, ()),
            device.uuid in ownership.shared,
            energy.get(device.uuid),
            busy.get(device.uuid, {}),
        )
        for device in devices
    ]


def _busy(reading: Reading, ownership: Ownership) -> Mapping[Owner | None, float]:
    found: dict[Owner | None, float] = {}
    for point in reading.points:
        named: dict[str, AttributeValue] = dict(point.attributes)
        if named.get(ENGINE) == "sm" and PID in named:
            owner = ownership.holders.get((reading.device, int(named[PID])))
            found[owner] = found.get(owner, 0.0) + point.value
    return found
