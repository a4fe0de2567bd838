"""Who is on a simulated GPU: the process of each job, and the sessions of the video encoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_gpu.backends.simulation.physics import Gpu, Instance
from otel_gpu.backends.simulation.shapes import Moment, Reply, state
from otel_gpu.catalog.processes import ENGINES, LISTS
from otel_gpu.model import Answer, Code

NAME = "python3"
PIDS = (2_000, 4_194_304)  # those that a 64-bit Linux gives after boot
UNDIVIDED = 0xFFFFFFFF  # the instance ids of a process on a whole GPU
FRAMES = 500  # of video that an encoder makes in a second when it does nothing else
OLD_ENGINES = ("smUtil", "memUtil", "encUtil", "decUtil")  # nvmlProcessUtilizationSample_t

Process = dict[str, Any]


def pid(part: Gpu | Instance, job: str) -> int:
    """Give the pid that a job has as long as it runs."""
    return int(part.chance.between(*PIDS, "pid", job))


def on_gpu(gpu: Gpu, tick: int) -> list[Process]:
    """List an `nvmlProcessInfo_t` for each process of a GPU, those of its instances included."""
    if gpu.instances:
        return [process for part in gpu.instances for process in on_instance(part, tick)]
    job = gpu.job(tick)
    return [process_of(gpu, job, gpu.memory(tick), (UNDIVIDED, UNDIVIDED))] if job else []


def on_instance(part: Instance, tick: int) -> list[Process]:
    """List the same of a MIG instance."""
    job, share = part.gpu.job(tick), part.share
    place = (share.gpu_instance, share.compute_instance)
    return [process_of(part, job, part.memory(tick), place)] if job else []


def process_of(part: Gpu | Instance, job: str, used: int, place: tuple[int, int]) -> Process:
    """Describe the process of a job, which has all the memory that is used."""
    return {
        "pid": pid(part, job),
        "usedGpuMemory": used,
        "gpuInstanceId": place[0],
        "computeInstanceId": place[1],
        "name": NAME,
    }


def utilization(gpu: Gpu, moment: Moment, args: tuple[int, ...]) -> list[Process] | Answer:
    """List an `nvmlProcessUtilizationInfo_v1_t` of each process, newer than the argument."""
    job, tick = gpu.job(moment.tick), moment.tick
    if not job or moment.unix_us <= max(args, default=0):
        return Answer(Code.NOT_FOUND)
    busy = (gpu.utilization(tick), gpu.bandwidth(tick), *gpu.media(tick))
    return [
        {
            "timeStamp": moment.unix_us,
            "pid": pid(gpu, job),
            **{name: round(100 * part) for name, part in zip(ENGINES.values(), busy, strict=True)},
            "name": NAME,
        }
    ]


def old_utilization(gpu: Gpu, moment: Moment, args: tuple[int, ...]) -> list[Process] | Answer:
    """List the same as an `nvmlProcessUtilizationSample_t`, which knows fewer engines."""
    known = utilization(gpu, moment, args)
    if isinstance(known, Answer):
        return known
    members = ("timeStamp", "pid", *OLD_ENGINES, "name")
    return [{name: process[name] for name in members} for process in known]


def encoding(gpu: Gpu, tick: int) -> list[int]:
    """Give sessions, frames a second and microseconds a frame of the video encoder."""
    encoder, *_ = gpu.media(tick)
    return [1, round(FRAMES * encoder), 1_000_000 // FRAMES] if encoder else [0, 0, 0]


CALLS: Mapping[str, Reply] = {
    LISTS["compute"].call: state(on_gpu),
    LISTS["graphics"].call: lambda *_: [],
    LISTS["mps"].call: lambda *_: [],
    "nvmlDeviceGetProcessesUtilizationInfo": utilization,
    "nvmlDeviceGetProcessUtilization": old_utilization,
    "nvmlDeviceGetEncoderStats": state(encoding),
    "nvmlDeviceGetFBCStats": lambda *_: {
        "sessionsCount": 0,
        "averageFPS": 0,
        "averageLatency": 0,
    },
}
"""By function."""
