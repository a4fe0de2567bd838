"""Who a GPU is, and who holds it: the series that others are joined with."""

from __future__ import annotations

from otel_gpu.catalog.reading import described, supplied
from otel_gpu.model import AttributeValue, Device, Kind, Metric, Point, Profile, Tier

FACTS = {
    "hw.model": "model",
    "hw.serial_number": "serial",
    "hw.driver_version": "driver_version",
    "hw.bios_version": "bios_version",
    "hw.firmware_version": "firmware_version",
    "nvidia.gpu.index": "index",
    "nvidia.gpu.pci.address": "pci_address",
    "nvidia.gpu.architecture": "architecture",
    "nvidia.gpu.compute_capability": "compute_capability",
    "nvidia.gpu.board.part_number": "part_number",
}
"""The attributes of the info series, and where a Device has them."""

BOARD = frozenset(
    {
        "hw.serial_number",
        "hw.bios_version",
        "hw.firmware_version",
        "nvidia.gpu.board.part_number",
    }
)
"""What an instance leaves to its GPU, which `hw.parent` leads to: 15 labels a series are enough."""


def facts(device: Device) -> list[Point]:
    """Give one point of 1 with everything that is known; what is unknown has no attribute."""
    known: list[tuple[str, AttributeValue]] = [("hw.vendor", "NVIDIA")]
    known += [
        (key, value)
        for key, member in FACTS.items()
        if (value := getattr(device, member)) not in {"", -1}
        and not (device.is_instance and key in BOARD)
    ]
    return [Point(1, tuple(known))]


INFO = Metric(
    name="nvidia.gpu.info",
    kind=Kind.UPDOWNCOUNTER,
    unit="{gpu}",
    brief="Always 1, with what identifies the GPU: join other series with it by `hw.id`.",
    read=described(facts),
    tier=Tier.STATIC,
    profile=Profile.CORE,
    attributes=("hw.vendor", *FACTS),
    integer=True,
    on_instance=True,
    typical=(1, 1),
    note="On a MIG instance, the facts of the board stand on its GPU's series only.",
)

ALLOCATION = Metric(
    name="nvidia.gpu.allocation",
    kind=Kind.UPDOWNCOUNTER,
    unit="{gpu}",
    brief="Always 1 while an owner holds the GPU: join lifetime series with it by `hw.id`.",
    read=supplied("the owners that attribution found"),
    tier=Tier.DEFAULT,
    profile=Profile.CORE,
    attributes=(
        "k8s.namespace.name",
        "k8s.pod.name",
        "k8s.container.name",
        "slurm.job.id",
        "slurm.user",
        "slurm.partition",
        "container.id",
        "nvidia.gpu.shared",
    ),
    integer=True,
    on_instance=True,
    typical=(1, 1),
    note="nvidia.gpu.shared is true on each of several owners of one GPU.",
)

OWNER = ALLOCATION.attributes[:-1]
METHOD = "nvidia.gpu.attribution.method"

WORKLOAD_ENERGY = Metric(
    name="nvidia.gpu.workload.energy",
    kind=Kind.COUNTER,
    unit="J",
    brief="Energy that a GPU used while an owner held it, from the time that it was first seen to.",
    read=supplied("the energy that the board counts, and the owners that attribution found"),
    tier=Tier.DEFAULT,
    attributes=(*OWNER, METHOD),
    typical=(60, 700),
    note="By method: exclusive; sm_time, divided among the owners of a shared GPU by the time that "
    "their processes kept its SMs busy; unattributed, without an owner. The sum is that of "
    "hw.energy since the GPU had its first owner.",
)

WORKLOAD_TIME = Metric(
    name="nvidia.gpu.workload.time",
    kind=Kind.COUNTER,
    unit="s",
    brief="Time for which an owner held a whole GPU; of a part of one, that part of the time.",
    read=supplied("the owners that attribution found"),
    tier=Tier.DEFAULT,
    attributes=(*OWNER, METHOD),
    on_instance=True,
    typical=(0, 1),
    note="By method: exclusive, or equal where several owners share it. A MIG instance counts "
    "with its compute slices, 3g as 3/7.",
)

METRICS = (INFO, ALLOCATION, WORKLOAD_ENERGY, WORKLOAD_TIME)
