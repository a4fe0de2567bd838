"""Processes: their memory, how many there are, and how busy they keep the engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from otel_gpu.backends.processes import host_pids
from otel_gpu.model import Query
from tests.fake_nvml.machine import Values
from tests.fake_nvml.told import Lines, Made, made, on_gpus

NOBODY = 2**22  # and above: pids that Linux never gives, so that no name is found for them


def visible(point: Made) -> Made:
    """Expect nothing in a PID namespace: the backend does not believe NVML's lists there."""
    return point if host_pids() else replace(point, value=lambda _told: None)


def processes(_board: str, turn: int) -> tuple[Lines, Sequence[Made]]:
    """Have two processes compute, of which one also draws, and one that only draws."""
    lists = [
        Query(f"nvmlDeviceGet{x}RunningProcesses") for x in ("Compute", "Graphics", "MPSCompute")
    ]
    sizes = {NOBODY + n: 1_000_003 + 2 * n + turn for n in range(3)}
    first, both, last = [{"pid": pid, "usedGpuMemory": size} for pid, size in sizes.items()]
    lines: dict[str, Values] = {
        f"{query.call}_v3": who
        for query, who in zip(lists, ([first, both], [both, last], []), strict=True)
    }
    kinds = dict(zip(sizes, ("compute", "compute", "graphics"), strict=True))
    points = [
        made(f"process memory usage | {pid} {kinds[pid]}", size, *lists)
        for pid, size in sizes.items()
    ]
    for kind, count in {"compute": 2, "graphics": 1, "mps": 0}.items():
        points.append(made(f"process active | {kind}", count, *lists))
    return lines, [*map(visible, points)]


ENGINES = {
    "sm": "smUtil",
    "dram": "memUtil",
    "nvenc": "encUtil",
    "nvdec": "decUtil",
    "nvjpg": "jpgUtil",
    "nvofa": "ofaUtil",
}


ALWAYS_NEW = 0  # a round may ask twice, and a driver tells of each moment once


@on_gpus
def process_utilization(_board: str, turn: int) -> tuple[Lines, Sequence[Made]]:
    """Tell of each process how busy it kept each engine: newest last, by two functions."""
    lines: dict[str, Values] = {}
    points: list[Made] = []
    for place, kind in enumerate(("ProcessesUtilizationInfo", "ProcessUtilization")):
        query = Query(f"nvmlDeviceGet{kind}", (0,))
        known = dict(list(ENGINES.items())[: 6 - 2 * place])
        busy = {name: (11 + 6 * turn + 20 * place + 2 * n) % 100 for n, name in enumerate(known)}
        newest = {member: busy[name] for name, member in known.items()}
        samples = [
            {"pid": NOBODY, "timeStamp": ALWAYS_NEW, **dict.fromkeys(newest, 99)},
            {"pid": NOBODY, "timeStamp": ALWAYS_NEW, **newest},
        ]
        lines[query.call] = samples
        points += [
            made(f"process utilization | {NOBODY} {name}", value / 100, query)
            for name, value in busy.items()
        ]
    return lines, [*map(visible, points)]
