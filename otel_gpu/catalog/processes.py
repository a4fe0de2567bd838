"""Who is on the GPU: processes, and sessions of the encoder and of frame capture.

A process is told by its pid and the name of its executable, never by its command line. In a PID
namespace of its own NVML's lists are silently empty: then there is a gap, not a 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from otel_gpu.catalog.forms import Values
from otel_gpu.catalog.reading import asking, call, either
from otel_gpu.catalog.shape import number, scaled, structs
from otel_gpu.model import (
    Attributes,
    Device,
    Kind,
    Metric,
    Missing,
    Point,
    Profile,
    Query,
    Read,
    Reason,
    Tier,
)

MICRO, PERCENT = 1e-6, 1e-2
LISTS = {
    "compute": Query("nvmlDeviceGetComputeRunningProcesses"),
    "graphics": Query("nvmlDeviceGetGraphicsRunningProcesses"),
    "mps": Query("nvmlDeviceGetMPSComputeRunningProcesses"),
}
ENGINES = {
    "sm": "smUtil",
    "dram": "memUtil",
    "nvenc": "encUtil",
    "nvdec": "decUtil",
    "nvjpg": "jpgUtil",
    "nvofa": "ofaUtil",
}
REST: Attributes = (("nvidia.gpu.process.type", "other"),)
"""What the processes stand under that have no series of their own (`budgets.processes_per_gpu`)."""


def merged(values: Values) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Give each process once, with the first list that names it: some stand in several."""
    seen: set[int] = set()
    for kind, query in LISTS.items():
        for process in structs(values, query, "pid"):
            if process["pid"] not in seen:
                seen.add(process["pid"])
                yield kind, process


def who(process: Mapping[str, Any]) -> Attributes:
    """Name a process."""
    name = process.get("name")
    known: Attributes = (("process.pid", process["pid"]),)
    if not name or not isinstance(name, str):
        return known
    return (*known, ("process.executable.name", name))


def memory(_device: Device, values: Values) -> list[Point] | Missing:
    """Give each process a point, the largest first."""
    found = list(merged(values))
    used = [
        Point(size, (*who(process), ("nvidia.gpu.process.type", kind)))
        for kind, process in found
        if (size := number(process, ("usedGpuMemory",))) is not None
    ]
    if found and not used:  # under WSL, for one
        return Missing(Reason.UNSUPPORTED, f"{LISTS['compute']}: does not tell memory here")
    return sorted(used, key=lambda point: point.value, reverse=True)


def active(_device: Device, values: Values) -> list[Point] | Missing:
    """Count processes by what they do."""
    counts = Counter(kind for kind, _ in merged(values))
    return [Point(counts[kind], (("nvidia.gpu.process.type", kind),)) for kind in LISTS]


def utilization(query: Query) -> Read:
    """Read the driver's samples of each process, the busiest first: the newest of each counts.

    What it gives is a mean since the time that is asked for: the ledger has it asked for what came
    after the last answer (measured on H200s; since 0, it is one over the whole buffer).
    """

    def points(_device: Device, values: Values) -> list[Point] | Missing:
        newest: dict[int, Mapping[str, Any]] = {}
        for sample in structs(values, query, "pid", "timeStamp", "smUtil"):
            if sample["timeStamp"] >= newest.get(sample["pid"], sample)["timeStamp"]:
                newest[sample["pid"]] = sample
        busiest = sorted(newest.values(), key=lambda one: one["smUtil"], reverse=True)
        return [
            Point(scaled(part, PERCENT), (*who(sample), ("nvidia.gpu.engine", engine)))
            for sample in busiest
            for engine, member in ENGINES.items()
            if (part := number(sample, (member,))) is not None
        ]

    return asking((query,), points)


PROCESS_MEMORY = Metric(
    name="nvidia.gpu.process.memory.usage",
    kind=Kind.UPDOWNCOUNTER,
    unit="By",
    brief="Device memory of each process.",
    read=asking(tuple(LISTS.values()), memory),
    profile=Profile.OFF,
    attributes=("process.pid", "process.executable.name", "nvidia.gpu.process.type"),
    integer=True,
    owner=True,
    on_instance=True,
    typical=(0, 8e10),
    note="Of the largest of a GPU (`budgets.processes_per_gpu`); the rest is one point of type "
    "`other`, so that the sum is that of all.",
)

PROCESS_UTILIZATION = Metric(
    name="nvidia.gpu.process.utilization",
    kind=Kind.GAUGE,
    unit="1",
    brief="Fraction of time in which each process kept an engine busy.",
    read=either(
        utilization(Query("nvmlDeviceGetProcessesUtilizationInfo", (0,))),
        utilization(Query("nvmlDeviceGetProcessUtilization", (0,))),
    ),
    profile=Profile.OFF,
    attributes=("process.pid", "process.executable.name", "nvidia.gpu.engine"),
    owner=True,
    typical=(0, 1),
    note="Of the processes with the most memory, where that is read too, else of the busiest "
    "(`budgets.processes_per_gpu`). Not offered while MIG is enabled.",
)

PROCESS_ACTIVE = Metric(
    name="nvidia.gpu.process.active",
    kind=Kind.UPDOWNCOUNTER,
    unit="{process}",
    brief="Processes on the GPU by what they do.",
    read=asking(tuple(LISTS.values()), active),
    attributes=("nvidia.gpu.process.type",),
    integer=True,
    on_instance=True,
    typical=(0, 4),
    note="Only in the PID namespace of the host.",
)

ENCODER_SESSIONS = Metric(
    name="nvidia.gpu.encoder.session.active",
    kind=Kind.UPDOWNCOUNTER,
    unit="{session}",
    brief="Sessions of the video encoder.",
    read=call("nvmlDeviceGetEncoderStats", path=(0,)),
    profile=Profile.FULL,
    integer=True,
    typical=(0, 2),
)

ENCODER_FRAMES = Metric(
    name="nvidia.gpu.encoder.frames",
    kind=Kind.GAUGE,
    unit="{frame}/s",
    brief="Frames a second that the video encoder's sessions make, on average.",
    read=call("nvmlDeviceGetEncoderStats", path=(1,)),
    profile=Profile.FULL,
    typical=(0, 60),
)

ENCODER_LATENCY = Metric(
    name="nvidia.gpu.encoder.latency",
    kind=Kind.GAUGE,
    unit="s",
    brief="Time that the video encoder takes for a frame, on average.",
    read=call("nvmlDeviceGetEncoderStats", path=(2,), scale=MICRO),
    profile=Profile.FULL,
    typical=(0, 0.05),
)

CAPTURE_SESSIONS = Metric(
    name="nvidia.gpu.capture.session.active",
    kind=Kind.UPDOWNCOUNTER,
    unit="{session}",
    brief="Sessions of frame capture.",
    read=call("nvmlDeviceGetFBCStats", path=("sessionsCount",)),
    tier=Tier.DEFAULT,
    profile=Profile.FULL,
    integer=True,
    typical=(0, 1),
)

METRICS = (
    PROCESS_MEMORY,
    PROCESS_UTILIZATION,
    PROCESS_ACTIVE,
    ENCODER_SESSIONS,
    ENCODER_FRAMES,
    ENCODER_LATENCY,
    CAPTURE_SESSIONS,
)
