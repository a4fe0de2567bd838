"""How busy the GPU's parts are, as NVML's own utilization calls tell it.

They say for what part of the last 1/6 to 1 s the part did anything at all: 1 means never idle, not
fully used. A MIG-enabled GPU does not offer them.
"""

from __future__ import annotations

from otel_gpu.catalog.reading import call, split
from otel_gpu.model import Kind, Metric, Profile, Tier

PERCENT = 1e-2

GPU_UTILIZATION = Metric(
    name="hw.gpu.utilization",
    kind=Kind.GAUGE,
    unit="1",
    brief="Fraction of time in which the GPU, or one of its media engines, was doing work.",
    read=split(
        "hw.gpu.task",
        {
            "general": call("nvmlDeviceGetUtilizationRates", path=("gpu",), scale=PERCENT),
            "encoder": call(
                "nvmlDeviceGetEncoderUtilization", path=(0,), scale=PERCENT, profile=Profile.FULL
            ),
            "decoder": call(
                "nvmlDeviceGetDecoderUtilization", path=(0,), scale=PERCENT, profile=Profile.FULL
            ),
            "jpeg": call(
                "nvmlDeviceGetJpgUtilization", path=(0,), scale=PERCENT, profile=Profile.FULL
            ),
            "ofa": call(
                "nvmlDeviceGetOfaUtilization", path=(0,), scale=PERCENT, profile=Profile.FULL
            ),
        },
    ),
    tier=Tier.FAST,
    profile=Profile.CORE,
    attributes=("hw.gpu.task",),
    owner=True,
    typical=(0.0, 1.0),
    dcgm=("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_ENC_UTIL", "DCGM_FI_DEV_DEC_UTIL"),
    note="Not offered while MIG is enabled.",
)

MEMORY_CONTROLLER_UTILIZATION = Metric(
    name="nvidia.gpu.memory_controller.utilization",
    kind=Kind.GAUGE,
    unit="1",
    brief="Fraction of time in which device memory was being read or written.",
    read=call("nvmlDeviceGetUtilizationRates", path=("memory",), scale=PERCENT),
    tier=Tier.FAST,
    profile=Profile.STANDARD,
    owner=True,
    typical=(0.0, 0.6),
    dcgm=("DCGM_FI_DEV_MEM_COPY_UTIL",),
    note="Bandwidth busy, not occupancy. Not offered while MIG is enabled.",
)

METRICS = (GPU_UTILIZATION, MEMORY_CONTROLLER_UTILIZATION)
