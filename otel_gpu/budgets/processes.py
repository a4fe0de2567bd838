"""So many processes of a GPU have series of their own, and the rest one where values add up. Pure.

Both metrics of a process are kept or left out together, so that they can be joined by pid.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf

from otel_gpu.catalog.processes import PROCESS_MEMORY, REST
from otel_gpu.model import Kind, Metric, Point, Reading

PID = "process.pid"

Process = tuple[str, int]
"""UUID of the GPU or MIG instance, and pid: a process on two GPUs has series on both."""

Cut = tuple[list[Reading], int]
"""The readings that are left, and how many points were left out of them."""


def is_of_processes(metric: Metric) -> bool:
    """Whether a metric has series for each process."""
    return PID in metric.attributes


def largest(readings: Sequence[Reading], most: int) -> Cut:
    """Keep so many processes of each GPU: those with the most memory, the lowest pid among equals.

    Where the memory of a process is not known, it comes after those whose is, the busiest first.
    """
    kept: set[Process] = set()
    for uuid, ranks in _ranks(readings).items():
        kept |= {(uuid, pid) for pid in sorted(ranks, key=ranks.__getitem__)[:most]}
    return cut(readings, kept.__contains__)


def within(readings: Sequence[Reading], room: int) -> Cut:
    """Keep whole processes of all GPUs, as many as fit in so many points: the lowest pids.

    A pid does not move while its process lives, so the same series stay from sweep to sweep.
    """
    sizes: dict[Process, int] = defaultdict(int)
    for uuid, pid, _ in _points(readings):
        sizes[uuid, pid] += 1
    left = room - sum(map(_adds_up, readings))  # each may get a point for its rest
    kept: set[Process] = set()
    for process in sorted(sizes, key=lambda one: (one[1], one[0])):
        left -= sizes[process]
        if left < 0:
            break
        kept.add(process)
    found = cut(readings, kept.__contains__)
    if sum(len(reading.points) for reading in found[0]) <= room:
        return found
    return [], sum(len(reading.points) for reading in readings)


def cut(readings: Iterable[Reading], kept: Callable[[Process], bool]) -> Cut:
    """Leave out the processes that are not kept; of values that add up, the rest is one point."""
    left: list[Reading] = []
    count = 0
    for reading in readings:
        points = [
            point
            for point in reading.points
            if (pid := pid_of(point)) is None or kept((reading.device, pid))
        ]
        if gone := len(reading.points) - len(points):
            count += gone
            if _adds_up(reading):
                points = _with_rest(reading.points, points)
            reading = reading._replace(points=tuple(points))  # noqa: PLW2901 - what is left of it
        if reading.points:
            left.append(reading)
    return left, count


def pid_of(point: Point) -> int | None:
    """Give the pid of the process that a point is about."""
    for key, value in point.attributes:
        if key == PID:
            return int(value)
    return None


def _with_rest(every: Iterable[Point], kept: Iterable[Point]) -> list[Point]:
    named = [point for point in kept if point.attributes != REST]
    rest = sum(point.value for point in every) - sum(point.value for point in named)
    return [*named, Point(rest, REST)]


def _adds_up(reading: Reading) -> bool:
    return reading.metric.kind is Kind.UPDOWNCOUNTER


def _points(readings: Iterable[Reading]) -> Iterable[tuple[str, int, Point]]:
    for reading in readings:
        for point in reading.points:
            pid = pid_of(point)
            if pid is not None:
                yield reading.device, pid, point


def _ranks(readings: Iterable[Reading]) -> Mapping[str, Mapping[int, tuple[float, float, int]]]:
    """Give what orders the processes of each GPU."""
    ranks: dict[str, dict[int, tuple[float, float, int]]] = defaultdict(dict)
    for reading in readings:
        sized = reading.metric.name == PROCESS_MEMORY.name
        for uuid, pid, point in _points((reading,)):
            size, busy, _ = ranks[uuid].get(pid, (inf, 0.0, pid))
            if sized:
                ranks[uuid][pid] = (-point.value, 0.0, pid)
            elif size == inf:
                ranks[uuid][pid] = (inf, min(busy, -point.value), pid)
    return ranks
