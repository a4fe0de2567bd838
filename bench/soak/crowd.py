"""Processes that come and go on a GPU: other pids every second, as on a busy node."""

from __future__ import annotations

import time
from collections.abc import Mapping
from math import floor
from typing import Any

from otel_gpu.backends.simulation.chance import Chance
from otel_gpu.backends.simulation.processes import PIDS, UNDIVIDED
from otel_gpu.model import Answer, Query

SLOTS = 24  # all taken at any time, so that a GPU has as many series in every calm
SHORTEST_S, LONGEST_S = 2.0, 40.0
NAMES = 200
LISTED = "nvmlDeviceGetComputeRunningProcesses"
USED = "nvmlDeviceGetProcessesUtilizationInfo"
ENGINES = ("smUtil", "memUtil", "encUtil", "decUtil", "jpgUtil", "ofaUtil")

Process = Mapping[str, Any]


class Crowd:
    """Who is there, by GPU and time alone: a worker that is replaced finds the same processes."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance

    def at(self, gpu: int, now_s: float) -> list[Process]:
        """List the processes of a GPU as `nvmlProcessInfo_t`, at a second of the run."""
        return [self._slot(gpu, slot, now_s) for slot in range(SLOTS)]

    def _slot(self, gpu: int, slot: int, now_s: float) -> Process:
        """Give who has a place now: each has it for the place's own time."""
        lasts_s = self._chance.between(SHORTEST_S, LONGEST_S, gpu, slot)
        one = self._chance.part(gpu, slot, floor(now_s / lasts_s))
        return {
            "pid": int(one.between(*PIDS, "pid")),
            "usedGpuMemory": int(one.between(1e8, 4e9, "memory")),
            "gpuInstanceId": UNDIVIDED,
            "computeInstanceId": UNDIVIDED,
            "name": f"job-{floor(one.between(0, NAMES, 'name'))}",
        }


def joined(query: Query, answer: Answer, crowd: list[Process]) -> Answer:
    """Add the crowd to an answer that lists processes; others stay as they are."""
    if query.call == LISTED and answer.ok:
        return Answer(0, [*answer.value, *crowd])
    if query.call == USED and crowd:
        now_us = time.time_ns() // 1000
        samples = [
            {"timeStamp": now_us, "pid": one["pid"], "name": one["name"]}
            | {engine: (one["pid"] + place) % 101 for place, engine in enumerate(ENGINES)}
            for one in crowd
        ]
        return Answer(0, [*(answer.value if answer.ok else []), *samples])
    return answer
