"""GPM: the GPU's own profiling counters (Hopper and newer), read as pairs of samples.

A metric is the mean between two samples of the driver's. Each metric's pair begins where its last
one ended, so that nothing falls between two readings, whatever tiers they are read at. Nothing here
imports pynvml; the driver's functions come with the constructor.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from otel_gpu.model import Answer, Code

CALL = "nvmlGpmMetricsGet"
SHORTEST_S = 0.101  # below 0.1 s by the driver's own clock it says success, and gives 0 and NaN

NO_BASELINE = Answer(Code.NO_DATA)


class Driver(Protocol):
    """The driver's functions, each answering with a return code."""

    def support(self, uuid: str, handle: Any) -> int:
        """Give 0 where this GPU has GPM, else the code of why not (`nvmlGpmQueryDeviceSupport`)."""

    def take(self, uuid: str, handle: Any) -> Answer:
        """Take a sample (`nvmlGpmSampleAlloc`, `nvmlGpmSampleGet`)."""

    def between(self, uuid: str, first: Any, second: Any, ids: Sequence[int]) -> list[Answer]:
        """Give metrics between two samples (`nvmlGpmMetricsGet`), each with its own code."""

    def free(self, sample: Any) -> None:
        """Give a sample's memory back (`nvmlGpmSampleFree`)."""


@dataclass(eq=False, slots=True)
class Sample:
    """A sample, and the monotonic second at which it was taken."""

    held: Any
    at_s: float


Begins = dict[int, Sample]
"""Of one GPU: where the next pair of each metric begins."""


class Gpm:
    """Reads GPM metrics by their ids; an answer's value is [mean, begin, end] in monotonic s."""

    def __init__(self, driver: Driver, clock: Callable[[], float] = time.monotonic) -> None:
        self._driver = driver
        self._clock = clock
        self._gpus: dict[str, Begins] = {}

    def ask(self, uuid: str, handle: Any, ids: Sequence[int]) -> dict[int, Answer]:
        """Take one sample, and give each metric since its last one; the first time, no data."""
        if uuid not in self._gpus:
            if code := self._driver.support(uuid, handle):
                return dict.fromkeys(ids, Answer(code))
            self._gpus[uuid] = {}
        taken = self._driver.take(uuid, handle)
        if not taken.ok:
            return dict.fromkeys(ids, Answer(taken.code))
        return self._read(uuid, self._gpus[uuid], Sample(taken.value, self._clock()), ids)

    def close(self) -> None:
        """Free every sample; a new enumeration begins new pairs."""
        for begins in self._gpus.values():
            for sample in set(begins.values()):
                self._driver.free(sample.held)
        self._gpus.clear()

    def _read(
        self, uuid: str, begins: Begins, end: Sample, ids: Sequence[int]
    ) -> dict[int, Answer]:
        answers = dict.fromkeys(ids, NO_BASELINE)
        before = set(begins.values())
        for begin, several in self._pairs(begins, end, ids).items():
            read = self._driver.between(uuid, begin.held, end.held, several)
            answers |= {
                one: mean(answer, begin.at_s, end.at_s)
                for one, answer in zip(several, read, strict=True)
            }
            begins |= dict.fromkeys(several, end)
        for one in ids:
            begins.setdefault(one, end)
        for unused in (before | {end}) - set(begins.values()):
            self._driver.free(unused.held)
        return answers

    def _pairs(self, begins: Begins, end: Sample, ids: Sequence[int]) -> dict[Sample, list[int]]:
        """Put metrics together whose pairs begin at the same sample."""
        pairs: dict[Sample, list[int]] = defaultdict(list)
        for one in ids:
            begin = begins.get(one)
            if begin is not None and end.at_s - begin.at_s >= SHORTEST_S:
                pairs[begin].append(one)
        return pairs


def mean(answer: Answer, begin_s: float, end_s: float) -> Answer:
    """Put the times of its pair beside a value; a value that is no number is no data."""
    if not answer.ok:
        return answer
    return Answer(0, [answer.value, begin_s, end_s]) if math.isfinite(answer.value) else NO_BASELINE
