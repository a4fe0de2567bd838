"""How busy the GPU's parts are.

NVML's own utilization calls say for what part of the last 1/6 to 1 s a part did anything at all: 1
means never idle, not fully used. A MIG-enabled GPU does not offer them. GPM (Hopper and newer) says
how much of each part was used between two reads, also of a MIG instance.
"""

from __future__ import annotations

from collections.abc import Callable

from otel_gpu.catalog import profiling
from otel_gpu.catalog.forms import Split
from otel_gpu.catalog.profiling import gpm, integral
from otel_gpu.catalog.reading import call, each, labelled, split
from otel_gpu.model import Device, Kind, Metric, Profile, Read, Tier

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

DCGM = {
    profiling.SM: ("DCGM_FI_PROF_SM_ACTIVE",),
    profiling.SM_OCCUPANCY: ("DCGM_FI_PROF_SM_OCCUPANCY",),
    profiling.DRAM: ("DCGM_FI_PROF_DRAM_ACTIVE",),
}

MOST_ENGINES = 8  # ids that nvml.h keeps for each kind, one after the other


def engines(prefix: str, first: int, count: Callable[[Device], int], most: int) -> Read:
    """Read the engines of one kind that the GPU has; GPM answers 0.0 for the others."""
    ask = gpm(first, scale=PERCENT)
    return each("nvidia.gpu.engine", prefix, count, ask, most, numbered=True, profile=Profile.FULL)


def mean(name: str, brief: str, number: int, *, note: str = "") -> Metric:
    """Describe a fraction that GPM gives in the standard profile."""
    return Metric(
        name=name,
        kind=Kind.GAUGE,
        unit="1",
        brief=brief,
        read=gpm(number, scale=PERCENT),
        tier=Tier.FAST,
        owner=True,
        on_instance=True,
        typical=(0.0, 1.0),
        dcgm=DCGM[number],
        note=note,
    )


SM_UTILIZATION = mean(
    "nvidia.gpu.sm.utilization",
    "Fraction of time in which a multiprocessor had a warp, averaged over all of them.",
    profiling.SM,
)
SM_OCCUPANCY = mean(
    "nvidia.gpu.sm.occupancy",
    "Warps that were resident, as a fraction of those that there is room for.",
    profiling.SM_OCCUPANCY,
)
DRAM_UTILIZATION = mean(
    "nvidia.gpu.dram.utilization",
    "Fraction of the memory's bandwidth that was used.",
    profiling.DRAM,
    note="Of a MIG instance: of its GPU instance's memory.",
)

ENGINE_UTILIZATION = Metric(
    name="nvidia.gpu.engine.utilization",
    kind=Kind.GAUGE,
    unit="1",
    brief="Fraction of time in which an engine was busy.",
    read=Split(
        (
            labelled(gpm(profiling.GRAPHICS, scale=PERCENT), (("nvidia.gpu.engine", "graphics"),)),
            engines("nvdec", profiling.NVDEC, lambda device: device.decoders, MOST_ENGINES),
            engines("nvenc", profiling.NVENC, lambda device: device.encoders, 4),
            engines("nvjpg", profiling.NVJPG, lambda device: device.jpegs, MOST_ENGINES),
            engines("nvofa", profiling.NVOFA, lambda device: device.ofas, 2),
        )
    ),
    tier=Tier.FAST,
    attributes=("nvidia.gpu.engine",),
    owner=True,
    on_instance=True,
    typical=(0.0, 1.0),
    dcgm=("DCGM_FI_PROF_GR_ENGINE_ACTIVE",),
)

PIPE_UTILIZATION = Metric(
    name="nvidia.gpu.pipe.utilization",
    kind=Kind.GAUGE,
    unit="1",
    brief="Fraction of the cycles in which a pipe of the multiprocessors worked.",
    read=split(
        "nvidia.gpu.pipe",
        {
            "tensor": gpm(profiling.TENSOR, scale=PERCENT),
            **{
                name: gpm(number, scale=PERCENT, profile=Profile.FULL)
                for name, number in {
                    "tensor_dfma": profiling.TENSOR_DFMA,
                    "tensor_hmma": profiling.TENSOR_HMMA,
                    "tensor_dmma": profiling.TENSOR_DMMA,
                    "tensor_imma": profiling.TENSOR_IMMA,
                    "fp64": profiling.FP64,
                    "fp32": profiling.FP32,
                    "fp16": profiling.FP16,
                    "integer": profiling.INTEGER,
                }.items()
            },
        },
    ),
    tier=Tier.FAST,
    attributes=("nvidia.gpu.pipe",),
    owner=True,
    on_instance=True,
    typical=(0.0, 0.95),
    dcgm=("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_PIPE_FP64_ACTIVE"),
)

ENGINE_TIME = Metric(
    name="nvidia.gpu.engine.time",
    kind=Kind.COUNTER,
    unit="s",
    brief="Time for which a part of the GPU worked, as if it had worked fully.",
    read=Split(
        tuple(
            integral(number, scale=PERCENT, attributes=(("nvidia.gpu.engine", name),))
            for name, number in {
                "graphics": profiling.GRAPHICS,
                "sm": profiling.SM,
                "tensor": profiling.TENSOR,
                "dram": profiling.DRAM,
            }.items()
        )
    ),
    tier=Tier.FAST,
    attributes=("nvidia.gpu.engine",),
    on_instance=True,
    typical=(0.0, 1.0),
    note="Begins at 0. Over any interval its rate is the mean utilization, exactly.",
)

METRICS = (
    GPU_UTILIZATION,
    MEMORY_CONTROLLER_UTILIZATION,
    SM_UTILIZATION,
    SM_OCCUPANCY,
    DRAM_UTILIZATION,
    ENGINE_UTILIZATION,
    PIPE_UTILIZATION,
    ENGINE_TIME,
)
