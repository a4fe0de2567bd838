"""Power and energy of the board.

NVML gives an instantaneous power, a 1 s average (what nvidia-smi and DCGM show), an energy counter
and a ring of samples 20 ms apart, in which the peaks stand that the averages hide.
"""

from __future__ import annotations

from otel_gpu.catalog.reading import call, either, field, only, split, window
from otel_gpu.model import Device, Kind, Metric, Profile, Tier

MILLI = 1e-3
GPU = (("hw.type", "gpu"),)
MEMORY_SCOPE = 2  # nvml.h, NVML_POWER_SCOPE_MEMORY
AVERAGING = frozenset({"Ampere", "Ada", "Hopper", "Blackwell", "Rubin"})
POWER_SAMPLES, ALL = 0, 0  # nvml.h, NVML_TOTAL_POWER_SAMPLES; since the beginning of the ring
USAGE = call("nvmlDeviceGetPowerUsage", scale=MILLI)


def averages(device: Device) -> bool:
    """Whether GetPowerUsage is a 1 s average here: Ampere and newer, except GA100 (nvml.h)."""
    return device.architecture in AVERAGING and device.compute_capability != "8.0"


POWER = Metric(
    name="hw.power",
    kind=Kind.GAUGE,
    unit="W",
    brief="Power that the board draws at this moment.",
    read=either(
        field(186, scale=MILLI),
        only(
            lambda device: not averages(device),
            USAGE,
            "nvmlDeviceGetPowerUsage is an average on this GPU",
        ),
    ),
    tier=Tier.FAST,
    profile=Profile.CORE,
    constant=GPU,
    owner=True,
    typical=(60, 700),
    dcgm=("DCGM_FI_DEV_POWER_USAGE_INSTANT",),
)

POWER_AVERAGE = Metric(
    name="nvidia.gpu.power.average",
    kind=Kind.GAUGE,
    unit="W",
    brief="Power that the board drew, averaged over the last second.",
    read=either(
        field(185, scale=MILLI),
        only(averages, USAGE, "nvmlDeviceGetPowerUsage is instantaneous on this GPU"),
    ),
    tier=Tier.FAST,
    profile=Profile.STANDARD,
    owner=True,
    typical=(60, 700),
    dcgm=("DCGM_FI_DEV_POWER_USAGE",),
    note="What nvidia-smi shows as power draw.",
)

POWER_PEAK = Metric(
    name="nvidia.gpu.power.peak",
    kind=Kind.GAUGE,
    unit="W",
    brief="Highest of the driver's 20 ms power samples over the trailing window.",
    read=window("nvmlDeviceGetSamples", POWER_SAMPLES, ALL, fold="max", scale=MILLI),
    tier=Tier.FAST,
    profile=Profile.STANDARD,
    typical=(60, 740),
    note="Absent when the samples covered under 90 % of the window (`sampling.power_window`).",
)

POWER_LOW = Metric(
    name="nvidia.gpu.power.low",
    kind=Kind.GAUGE,
    unit="W",
    brief="Lowest of the driver's 20 ms power samples over the trailing window.",
    read=window("nvmlDeviceGetSamples", POWER_SAMPLES, ALL, fold="min", scale=MILLI),
    tier=Tier.FAST,
    profile=Profile.FULL,
    typical=(60, 700),
    note="Absent when the samples covered under 90 % of the window (`sampling.power_window`).",
)

MEMORY_POWER = Metric(
    name="nvidia.gpu.memory.power",
    kind=Kind.GAUGE,
    unit="W",
    brief="Power that device memory drew, averaged over the last second.",
    read=field(185, scope=MEMORY_SCOPE, scale=MILLI),
    tier=Tier.DEFAULT,
    profile=Profile.FULL,
    typical=(20, 140),
)

ENERGY = Metric(
    name="hw.energy",
    kind=Kind.COUNTER,
    unit="J",
    brief="Energy that the board used since the driver was loaded.",
    read=call("nvmlDeviceGetTotalEnergyConsumption", scale=MILLI),
    tier=Tier.DEFAULT,
    profile=Profile.CORE,
    constant=GPU,
    typical=(60, 700),
    dcgm=("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",),
    note="As the driver counts it: it does not start at 0 with the agent.",
)

POWER_LIMIT = Metric(
    name="nvidia.gpu.power.limit",
    kind=Kind.GAUGE,
    unit="W",
    brief="Power limit of the board: what is enforced, what was asked for, what can be asked for.",
    read=split(
        "hw.limit_type",
        {
            "enforced": either(
                field(190, scale=MILLI), call("nvmlDeviceGetEnforcedPowerLimit", scale=MILLI)
            ),
            "requested": either(
                field(192, scale=MILLI, profile=Profile.FULL),
                call("nvmlDeviceGetPowerManagementLimit", scale=MILLI, profile=Profile.FULL),
            ),
            "default": either(
                field(189, scale=MILLI, profile=Profile.FULL),
                call("nvmlDeviceGetPowerManagementDefaultLimit", scale=MILLI, profile=Profile.FULL),
            ),
            "min": field(187, scale=MILLI, profile=Profile.FULL),
            "max": field(188, scale=MILLI, profile=Profile.FULL),
        },
    ),
    tier=Tier.SLOW,
    profile=Profile.STANDARD,
    attributes=("hw.limit_type",),
    typical=(700, 700),
    dcgm=("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "DCGM_FI_DEV_POWER_MGMT_LIMIT"),
)

METRICS = (POWER, POWER_AVERAGE, POWER_PEAK, POWER_LOW, MEMORY_POWER, ENERGY, POWER_LIMIT)
