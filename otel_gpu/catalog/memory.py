"""Device memory: how much there is, who has it, and the window the host sees of it.

A part with unified memory (GB10, Tegra) has no device memory of its own: NVML refuses, or says a
total of 0, and there is no series.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import truediv

from otel_gpu.catalog.forms import Values, invalid
from otel_gpu.catalog.reading import asking, call
from otel_gpu.catalog.shape import number
from otel_gpu.model import Device, Kind, Metric, Missing, Point, Profile, Query, Read, Reason, Tier

INFO = Query("nvmlDeviceGetMemoryInfo_v2")
NO_MEMORY = Missing(Reason.UNSUPPORTED, f"{INFO}: total 0: this GPU has no memory of its own")


def info(of: Callable[[float, float], float], name: str) -> Read:
    """Read a member of the memory info and the total, which are of one moment.

    Since version 2 the info tells `reserved` from `used`.
    """

    def points(_device: Device, values: Values) -> list[Point] | Missing:
        total, size = (number(values[INFO], (member,)) for member in ("total", name))
        if total == 0:
            return NO_MEMORY
        if total is None or size is None:
            return invalid(INFO, values[INFO])
        return [Point(of(size, total))]

    return asking((INFO,), points)


def part(name: str) -> Read:
    """Read one member of the memory info."""
    return info(lambda size, _total: size, name)


MEMORY_USAGE = Metric(
    name="hw.gpu.memory.usage",
    kind=Kind.UPDOWNCOUNTER,
    unit="By",
    brief="Device memory that is allocated, without what the driver reserves.",
    read=part("used"),
    tier=Tier.FAST,
    profile=Profile.CORE,
    integer=True,
    owner=True,
    on_instance=True,
    typical=(0, 80e9),
    dcgm=("DCGM_FI_DEV_FB_USED",),
)

MEMORY_LIMIT = Metric(
    name="hw.gpu.memory.limit",
    kind=Kind.UPDOWNCOUNTER,
    unit="By",
    brief="Device memory that the GPU has in all.",
    read=part("total"),
    tier=Tier.STATIC,
    profile=Profile.CORE,
    integer=True,
    on_instance=True,
    typical=(80e9, 80e9),
    dcgm=("DCGM_FI_DEV_FB_TOTAL",),
)

MEMORY_UTILIZATION = Metric(
    name="hw.gpu.memory.utilization",
    kind=Kind.GAUGE,
    unit="1",
    brief="Fraction of device memory that is allocated.",
    read=info(truediv, "used"),
    tier=Tier.FAST,
    profile=Profile.CORE,
    owner=True,
    on_instance=True,
    typical=(0, 1),
    note="Used over total. DCGM's percentage leaves the reserved part out of the total.",
)

MEMORY_FREE = Metric(
    name="nvidia.gpu.memory.free",
    kind=Kind.UPDOWNCOUNTER,
    unit="By",
    brief="Device memory that can still be allocated.",
    read=part("free"),
    tier=Tier.DEFAULT,
    profile=Profile.FULL,
    integer=True,
    on_instance=True,
    typical=(0, 80e9),
    dcgm=("DCGM_FI_DEV_FB_FREE",),
)

MEMORY_RESERVED = Metric(
    name="nvidia.gpu.memory.reserved",
    kind=Kind.UPDOWNCOUNTER,
    unit="By",
    brief="Device memory that the driver and the firmware keep for themselves.",
    read=part("reserved"),
    tier=Tier.DEFAULT,
    profile=Profile.STANDARD,
    integer=True,
    on_instance=True,
    typical=(0, 1e9),
    dcgm=("DCGM_FI_DEV_FB_RESERVED",),
)

BAR1_USAGE = Metric(
    name="nvidia.gpu.bar1.usage",
    kind=Kind.UPDOWNCOUNTER,
    unit="By",
    brief="Part of the BAR1 window, through which the host reaches device memory, that is mapped.",
    read=call("nvmlDeviceGetBAR1MemoryInfo", path=("bar1Used",)),
    tier=Tier.DEFAULT,
    profile=Profile.FULL,
    integer=True,
    typical=(0, 4e9),
    dcgm=("DCGM_FI_DEV_BAR1_USED",),
)

BAR1_LIMIT = Metric(
    name="nvidia.gpu.bar1.limit",
    kind=Kind.UPDOWNCOUNTER,
    unit="By",
    brief="Size of the BAR1 window, through which the host reaches device memory.",
    read=call("nvmlDeviceGetBAR1MemoryInfo", path=("bar1Total",)),
    tier=Tier.STATIC,
    profile=Profile.FULL,
    integer=True,
    typical=(128e9, 128e9),
    dcgm=("DCGM_FI_DEV_BAR1_TOTAL",),
)

METRICS = (
    MEMORY_USAGE,
    MEMORY_LIMIT,
    MEMORY_UTILIZATION,
    MEMORY_FREE,
    MEMORY_RESERVED,
    BAR1_USAGE,
    BAR1_LIMIT,
)
