"""Clocks, and what holds them back."""

from __future__ import annotations

from otel_gpu.catalog.forms import Values
from otel_gpu.catalog.reading import asking, call, either, field, split
from otel_gpu.catalog.shape import whole
from otel_gpu.model import Device, Kind, Metric, Missing, Point, Profile, Query, Read, Reason, Tier

MEGA = 1_000_000
NANO = 1e-9
GRAPHICS, SM, MEMORY, VIDEO = 0, 1, 2, 3  # nvml.h, nvmlClockType_t

REASONS = {
    "idle": 0x1,
    "app_clocks": 0x2,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal": 0x20,
    "hw_thermal": 0x40,
    "hw_power_brake": 0x80,
    "display": 0x100,
}
"""The bits of nvml.h's nvmlClocksEventReason*."""


def domains(function: str) -> Read:
    """Read a clock of each domain."""
    return split(
        "nvidia.gpu.clock.domain",
        {
            "sm": call(function, SM, scale=MEGA),
            "memory": call(function, MEMORY, scale=MEGA),
            "graphics": call(function, GRAPHICS, scale=MEGA, profile=Profile.FULL),
            "video": call(function, VIDEO, scale=MEGA, profile=Profile.FULL),
        },
    )


def reasons(current: str, supported: str) -> Read:
    """Read the mask of active reasons, and leave out those that the GPU does not report."""
    active, offered = Query(current), Query(supported)

    def points(_device: Device, values: Values) -> list[Point] | Missing:
        now, known = whole(values, active), whole(values, offered)
        return [
            Point(int(bool(now & bit)), (("nvidia.gpu.clock.reason", name),))
            for name, bit in REASONS.items()
            if known & bit
        ] or Missing(Reason.UNSUPPORTED, f"{offered}: this GPU reports none of the reasons")

    return asking((active, offered), points)


CLOCK_FREQUENCY = Metric(
    name="nvidia.gpu.clock.frequency",
    kind=Kind.GAUGE,
    unit="Hz",
    brief="Clock at which a domain of the GPU runs.",
    read=domains("nvmlDeviceGetClockInfo"),
    tier=Tier.FAST,
    profile=Profile.STANDARD,
    attributes=("nvidia.gpu.clock.domain",),
    typical=(345e6, 1980e6),
    dcgm=("DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_MEM_CLOCK", "DCGM_FI_DEV_VIDEO_CLOCK"),
)

CLOCK_LIMIT = Metric(
    name="nvidia.gpu.clock.limit",
    kind=Kind.GAUGE,
    unit="Hz",
    brief="Highest clock at which a domain of the GPU can run.",
    read=domains("nvmlDeviceGetMaxClockInfo"),
    tier=Tier.STATIC,
    profile=Profile.FULL,
    attributes=("nvidia.gpu.clock.domain",),
    typical=(1980e6, 1980e6),
    dcgm=("DCGM_FI_DEV_MAX_SM_CLOCK", "DCGM_FI_DEV_MAX_MEM_CLOCK"),
)

PERFORMANCE_STATE = Metric(
    name="nvidia.gpu.performance_state",
    kind=Kind.GAUGE,
    unit="{pstate}",
    brief="Performance state: 0 is the fastest, 15 the slowest.",
    read=call("nvmlDeviceGetPerformanceState"),
    tier=Tier.FAST,
    profile=Profile.FULL,
    integer=True,
    typical=(0, 8),
    dcgm=("DCGM_FI_DEV_PSTATE",),
)

CLOCK_REASON_STATUS = Metric(
    name="nvidia.gpu.clock.reason.status",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="Whether a reason holds the clocks below their limit at this moment.",
    read=either(
        reasons(
            "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetSupportedClocksEventReasons"
        ),
        reasons(
            "nvmlDeviceGetCurrentClocksThrottleReasons",
            "nvmlDeviceGetSupportedClocksThrottleReasons",
        ),
    ),
    tier=Tier.FAST,
    profile=Profile.FULL,
    attributes=("nvidia.gpu.clock.reason",),
    integer=True,
    typical=(0, 1),
    dcgm=("DCGM_FI_DEV_CLOCKS_EVENT_REASONS",),
)

CLOCK_REASON_TIME = Metric(
    name="nvidia.gpu.clock.reason.time",
    kind=Kind.COUNTER,
    unit="s",
    brief="Time for which a reason held the clocks below their limit since the driver was loaded.",
    read=split(
        "nvidia.gpu.clock.reason",
        {
            "sw_power_cap": field(74, scale=NANO),
            "sync_boost": field(76, scale=NANO),
            "board_limit": field(77, scale=NANO),
            "sw_thermal": field(269, scale=NANO),
            "hw_thermal": field(270, scale=NANO),
            "hw_power_brake": field(271, scale=NANO),
        },
    ),
    tier=Tier.DEFAULT,
    profile=Profile.STANDARD,
    attributes=("nvidia.gpu.clock.reason",),
    typical=(0, 0.2),
    dcgm=("DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS", "DCGM_FI_DEV_POWER_VIOLATION"),
    note="The last three were renumbered between driver branches; both numberings are known.",
)

METRICS = (
    CLOCK_FREQUENCY,
    CLOCK_LIMIT,
    PERFORMANCE_STATE,
    CLOCK_REASON_STATUS,
    CLOCK_REASON_TIME,
)
