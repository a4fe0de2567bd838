"""Temperatures, what is left before the GPU slows down, and fans.

Ada and newer state their limits as a margin that shrinks to 0 (T.Limit); older GPUs, and some new
ones as well, state absolute thresholds.
"""

from __future__ import annotations

from otel_gpu.catalog.forms import Split
from otel_gpu.catalog.reading import call, each, either, field, labelled, split
from otel_gpu.model import Kind, Metric, Profile, Read, Tier

GPU_SENSOR = 0
SHUTDOWN, SLOWDOWN, MEMORY_MAX, GPU_MAX = 0, 1, 2, 3  # nvml.h, nvmlTemperatureThresholds_t


def limits(shutdown: Read, slowdown: Read, gpu_max: Read, memory_max: Read) -> Split:
    """Name four limits by what they hold for and what happens there."""
    return Split(
        tuple(
            labelled(read, (("hw.sensor_location", location), ("hw.limit_type", limit)))
            for read, location, limit in (
                (shutdown, "gpu", "high.critical"),
                (slowdown, "gpu", "throttled"),
                (gpu_max, "gpu", "max"),
                (memory_max, "memory", "max"),
            )
        )
    )


TEMPERATURE = Metric(
    name="hw.temperature",
    kind=Kind.GAUGE,
    unit="Cel",
    brief="Temperature of the GPU and of its memory.",
    read=split(
        "hw.sensor_location",
        {
            "gpu": either(
                call("nvmlDeviceGetTemperatureV", GPU_SENSOR),
                call("nvmlDeviceGetTemperature", GPU_SENSOR),
            ),
            "memory": field(82),
        },
    ),
    tier=Tier.FAST,
    profile=Profile.CORE,
    attributes=("hw.sensor_location",),
    typical=(30, 85),
    dcgm=("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_MEMORY_TEMP"),
    note="The memory's sensor is found on boards with HBM and on some with GDDR.",
)

TEMPERATURE_LIMIT = Metric(
    name="hw.temperature.limit",
    kind=Kind.GAUGE,
    unit="Cel",
    brief="Temperature at which the GPU shuts down or slows down, or is meant to stay below.",
    read=limits(
        *(
            call("nvmlDeviceGetTemperatureThreshold", which)
            for which in (SHUTDOWN, SLOWDOWN, GPU_MAX, MEMORY_MAX)
        )
    ),
    tier=Tier.STATIC,
    profile=Profile.FULL,
    attributes=("hw.sensor_location", "hw.limit_type"),
    typical=(85, 95),
    dcgm=("DCGM_FI_DEV_SHUTDOWN_TEMP", "DCGM_FI_DEV_SLOWDOWN_TEMP"),
    note="Absolute thresholds; Ada and newer may offer only the margin.",
)

TEMPERATURE_MARGIN = Metric(
    name="nvidia.gpu.temperature.margin",
    kind=Kind.GAUGE,
    unit="Cel",
    brief="What the GPU may still warm up before its nearest slowdown limit.",
    read=call("nvmlDeviceGetMarginTemperature"),
    tier=Tier.DEFAULT,
    profile=Profile.STANDARD,
    typical=(2, 55),
    dcgm=("DCGM_FI_DEV_GPU_TEMP_LIMIT",),
)

TEMPERATURE_MARGIN_LIMIT = Metric(
    name="nvidia.gpu.temperature.margin.limit",
    kind=Kind.GAUGE,
    unit="Cel",
    brief="Margin at which the GPU shuts down or slows down, or is meant to stay above.",
    read=limits(*(field(number) for number in (193, 194, 196, 195))),
    tier=Tier.STATIC,
    profile=Profile.FULL,
    attributes=("hw.sensor_location", "hw.limit_type"),
    typical=(-8, 0),
    note="Negative values lie beyond the point where the margin is used up.",
)

FAN_SPEED_RATIO = Metric(
    name="hw.fan.speed_ratio",
    kind=Kind.GAUGE,
    unit="1",
    brief="Speed that each fan is driven at, as a fraction of its nominal full speed.",
    read=each(
        "hw.sensor_location",
        "fan",
        lambda device: device.fans,
        call("nvmlDeviceGetFanSpeed_v2", scale=1e-2),
    ),
    tier=Tier.DEFAULT,
    profile=Profile.STANDARD,
    attributes=("hw.sensor_location",),
    typical=(0.0, 0.9),
    dcgm=("DCGM_FI_DEV_FAN_SPEED",),
    note="Intended, not measured. Boards without fans of their own have none.",
)

FAN_SPEED_TARGET = Metric(
    name="nvidia.gpu.fan.speed.target",
    kind=Kind.GAUGE,
    unit="rpm",
    brief="Speed that the first fan is driven at.",
    read=call("nvmlDeviceGetFanSpeedRPM"),
    tier=Tier.DEFAULT,
    profile=Profile.FULL,
    typical=(0, 3000),
    note="Intended, not measured.",
)

METRICS = (
    TEMPERATURE,
    TEMPERATURE_LIMIT,
    TEMPERATURE_MARGIN,
    TEMPERATURE_MARGIN_LIMIT,
    FAN_SPEED_RATIO,
    FAN_SPEED_TARGET,
)
