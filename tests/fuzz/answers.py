"""A driver whose answers are drawn: sound ones, damaged ones, refusals, and what nobody expects.

`Fickle` stands where the worker stands, so that nothing between the answers and what is published
is left out. It is made from a seed, and counts what it gave.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from otel_gpu.backends.direct import Answered
from otel_gpu.model import Answer, BackendError, Code, Device, Event, EventKind, Query, System
from tests.catalog.world import A100, BLACKWELL, FIELD, GPM, HOPPER, SLICE, VOLTA, WORLD
from tests.machine import Time

SAMPLES = "nvmlDeviceGetSamples"
CODES = (*Code, 5, 7, 8, 11, 14, 19, 20, 22, 23, 24, 26, 29, 30, 1000, -2, 2**31 - 1, -(2**31))
PASSING = (Code.TIMEOUT, Code.NO_DATA, Code.NOT_READY, Code.NO_PERMISSION, Code.UNKNOWN)

WHOLE = (
    *(0, 1, -1, 2, 15, 16, 50, 99, 100, 101, 127, 128, 200, 201, 255, 256, 1000, 65_535, 65_536),
    *(2**31 - 2, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1, 2**32, 2**32 + 1, 2**50, 2**50 + 1),
    *(2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1, 2**64, 10**30, 10**400),
    *(-(2**31), -(2**32), -(2**63), -(2**63) - 1, -(2**64), -(10**400), 20_000_001, 10**11),
)
FLOATS = (
    *(0.0, -0.0, 0.5, -0.5, 1.0, 99.999, 100.0, 100.0000001, 1e-300, 5e-324, 1e15, 1e16, 1e300),
    *(math.nan, math.inf, -math.inf, 2.0**32 - 1, 2.0**63, 2.0**64, -1e300, 1e308, 0.1 + 0.2),
)
OTHERS: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        "",
        "57",
        "N/A",
        "ok",
        "ü\ud800",
        "\0",
        b"",
        b"57",
        b"\xff\xfe",
        [],
        (),
        {},
    ),
    *(
        [None],
        [[]],
        [1],
        [[1, 2]],
        [[1, 2, 3]],
        ({},),
        {"": 0},
        {"gpu": None},
        {0: 1},
        {None: None},
    ),
    *([math.nan, 1.0, 2.0], [50.0, 2.0, 1.0], [50.0, math.inf, math.inf], [1e300, 0.0, 1.0]),
    *([[0, 0], [2**63, 1]], [[1, "x"], "xy", b"xy"], [{"pid": 1}], [{"pid": None}, {}], "pid"),
)
JUMPS = (0, 1, 7, 2**31, 2**32 - 5, 2**32 - 2**28, 2**32, 2**62, 2**63 - 1)
MOMENTS_S = (-1e300, -(2.0**62), -1e10, -1e9, -1.0, 0.0, 1.0, 999.0, 1e4, 1e9, 1e10, 2.0**62, 1e300)
NAMES: tuple[Any, ...] = ("python3", "", "ü\ufffd", 'a"\\\n', None, 7, b"x", [], ["x"], {"y": 1})


class Fickle:
    """A `sampler.Driver` on which nobody can rely."""

    def __init__(self, seed: object, time: Time, *, calm: bool = False) -> None:
        self._chance = random.Random(f"{seed}")  # noqa: S311 - it is to be the same each time
        self._time = time
        self._answered_s: dict[tuple[str, Query], float] = {}
        self._counts: dict[tuple[str, Query], int] = {}
        self._moods = MOODS[:1] if calm else MOODS
        self._devices = [HOPPER, BLACKWELL, VOLTA, SLICE] if calm else self._box()
        self._calm = calm
        self._reopens = True
        self._here: list[Device] = []
        self.given = 0
        self.answered: set[str] = set()
        self.generation = 0
        self.trouble: BackendError | None = None
        self.hung: tuple[tuple[str, str, float], ...] = ()

    def system(self, now: float) -> System | None:
        """Enumerate, mostly; sometimes there is trouble, and sometimes a GPU is gone."""
        del now
        if not self._calm and self._is(0.03):
            self.trouble = BackendError(self._chance.choice(CODES), "the driver is gone")
            self._reopens = True
            return None
        self.trouble = None
        if self._reopens or self._is(0.04):
            self._reopens = False
            self.generation += 1
            self._here = [one for one in self._devices if self._calm or self._is(0.9)]
        return System(driver_version="580.159.04", devices=tuple(self._here))

    def reopen(self) -> None:
        """Enumerate at the next turn."""
        self._reopens = True

    def release(self, why: str, for_s: float) -> None:
        """Enumerate anew when it is over."""
        del why, for_s
        self._reopens = True

    def events(self) -> list[Event]:
        """Tell of something now and then."""
        if not self._is(0.1) or not self._here:
            return []
        device = self._chance.choice(self._here)
        kind = self._chance.choice(tuple(EventKind))
        code = self._chance.choice(WHOLE[:30])
        return [Event(device.uuid, kind, code, 2**32 - 1, 2**32 - 1, self._time.unix_ns())]

    def ask(self, questions: Sequence[tuple[str, Sequence[Query]]]) -> list[Answered]:
        """Answer each GPU in a mood of its own, or not at all."""
        self.hung = ()
        answered = []
        for uuid, queries in questions:
            if not self._calm and self._is(0.03):
                self.hung += ((queries[0].call, uuid, self._time.now_s),) if self._is(0.5) else ()
                continue
            mood = self._chance.choice(self._moods)
            read_s = self._time.monotonic()
            answers = [self._answer(uuid, query, mood) for query in queries]
            self.given += len(answers)
            self.answered.add(uuid)
            answered.append(Answered(uuid, read_s, answers))
            self._time.pass_by(self._chance.choice((0.0, 0.0001, 0.01)))
        return answered

    def _answer(self, uuid: str, query: Query, mood: Mapping[str, float]) -> Answer:
        draw = self._chance.random()
        if draw < mood["refused"]:
            lasting = self._is(mood["lasting"])
            return Answer(self._chance.choice(CODES if lasting else PASSING), self._junk())
        if draw < mood["refused"] + mood["junk"]:
            return Answer(0, self._junk())
        value = self._sound(uuid, query)
        if draw < mood["refused"] + mood["junk"] + mood["damaged"]:
            value = self._damaged(value)
        return Answer(0, value)

    def _sound(self, uuid: str, query: Query) -> Any:
        """Give what a driver would, with counters that mostly grow."""
        if query.call == GPM:
            return self._span(uuid, query)
        if query.call == SAMPLES:
            return self._ring()
        if query.call in LISTS:
            return [self._process() for _ in range(self._chance.choice((0, 1, 3)))]
        if query.call == FIELD or isinstance(WORLD.get(query, 0), int):
            return self._count(uuid, query)
        return self._varied(WORLD[query])

    def _count(self, uuid: str, query: Query) -> int:
        here = uuid, query
        start = WORLD.get(query)
        before = self._counts.get(here, start if isinstance(start, int) else 1)
        if self._calm:
            return before
        grown = before + self._chance.choice((0, 0, 1, 3, 1000))
        if self._is(0.1):
            grown = self._chance.choice(JUMPS)
        self._counts[here] = grown
        return grown

    def _span(self, uuid: str, query: Query) -> list[float]:
        """Give a mean since the last answer, which now and then comes twice or overlaps."""
        now_s, here = self._time.now_s, (uuid, query)
        begin_s = self._answered_s.get(here, now_s - 1.0)
        self._answered_s[here] = now_s
        if self._is(0.03):
            begin_s -= self._chance.choice((0.5, 10.0, -0.5))
        span = [begin_s, now_s]
        if self._is(0.3 if begin_s == now_s - 1.0 else 0.02):  # at first, when the start is set
            odd = sorted(self._chance.sample(MOMENTS_S, 2))
            ahead = [now_s + 1000.0, now_s + 1002.0]
            span = self._chance.choice((odd, [odd[0], now_s], [begin_s, odd[1]], ahead))
        return [self._chance.uniform(0.0, 100.0), *span]

    def _ring(self) -> list[list[float]]:
        now_us = self._time.unix_ns() // 1000
        most = 120 if self._calm else self._chance.choice((0, 1, 60, 120))
        return [[now_us - 20_000 * place, 400_000 + place] for place in range(most)]

    def _process(self) -> dict[str, Any]:
        return {
            "pid": self._chance.choice((1, 2, 3, 701, 2**32 - 2)),
            "name": self._chance.choice(NAMES),
            "usedGpuMemory": self._chance.choice((0, 5, 2**30, None, 2**64 - 1, -1, 2**51)),
            "timeStamp": self._chance.choice((0, 1, self._time.unix_ns() // 1000)),
            **{member: self._chance.choice((0, 50, 100, 101, None)) for member in MEMBERS},
        }

    def _varied(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._varied(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self._varied(one) for one in value]
        if isinstance(value, int) and self._is(0.3):
            return max(0, value + self._chance.choice((-1, 1, 2, 100)))
        return value

    def _damaged(self, value: Any) -> Any:
        """Damage a value in one place: truncate it, add to it, or put something else there."""
        if isinstance(value, dict) and value and self._is(0.8):
            name = self._chance.choice(tuple(value))
            rest = {key: one for key, one in value.items() if key != name}
            draw = self._chance.random()
            if draw < 0.3:
                return rest
            if draw < 0.4:
                return {**value, self._chance.choice(("new", "", name * 2)): self._junk()}
            return {**rest, name: self._damaged(value[name])}
        if isinstance(value, list) and value and self._is(0.8):
            place = self._chance.randrange(len(value))
            draw = self._chance.random()
            if draw < 0.3:
                return value[:place]
            if draw < 0.4:
                return [*value, self._junk()]
            return [*value[:place], self._damaged(value[place]), *value[place + 1 :]]
        return self._junk()

    def _junk(self, depth: int = 0) -> Any:
        draw = self._chance.random()
        if draw < 0.1 and depth < 3:
            return [self._junk(depth + 1) for _ in range(self._chance.randrange(4))]
        if draw < 0.2 and depth < 3:
            keys = (
                "gpu",
                "pid",
                "used",
                "total",
                "healthMask",
                "isGridLicenseSupported",
                0,
                "GPU-1",
            )
            return {self._chance.choice(keys): self._junk(depth + 1) for _ in range(3)}
        if draw < 0.25:
            return (self._junk(3), self._junk(3), self._junk(3))
        return self._chance.choice(self._chance.choice((WHOLE, WHOLE, FLOATS, OTHERS)))

    def _box(self) -> list[Device]:
        """Make GPUs of every generation, each with as many parts as the chance has it."""
        gpus = [
            replace(
                one,
                fans=self._chance.randrange(10),
                decoders=self._chance.randrange(10),
                encoders=self._chance.randrange(6),
                jpegs=self._chance.randrange(10),
                ofas=self._chance.randrange(4),
                nvlinks=self._chance.choice((0, 1, 4, 18, 36, 40)),
                nvlink_version=self._chance.randrange(9),
                c2c=self._is(0.5),
                architecture=self._chance.choice((one.architecture, one.architecture, "", "14")),
                compute_capability=self._chance.choice((one.compute_capability, "", "8.0")),
            )
            for one in self._chance.sample((HOPPER, BLACKWELL, VOLTA, A100), 2)
        ]
        return [*gpus, SLICE]

    def _is(self, odds: float) -> bool:
        return self._chance.random() < odds


LISTS = frozenset(
    {
        "nvmlDeviceGetComputeRunningProcesses",
        "nvmlDeviceGetGraphicsRunningProcesses",
        "nvmlDeviceGetMPSComputeRunningProcesses",
        "nvmlDeviceGetProcessesUtilizationInfo",
        "nvmlDeviceGetProcessUtilization",
    }
)
MEMBERS = ("smUtil", "memUtil", "encUtil", "decUtil", "jpgUtil", "ofaUtil")


def mood(refused: float, junk: float, damaged: float, lasting: float = 0.0) -> Mapping[str, float]:
    """Say what part of the answers is what; the rest is sound."""
    return {"refused": refused, "junk": junk, "damaged": damaged, "lasting": lasting}


MOODS = (
    mood(0.0, 0.0, 0.0),
    mood(0.0, 0.0, 0.3),
    mood(0.02, 0.02, 0.1, lasting=0.3),
    mood(0.1, 0.2, 0.4, lasting=0.1),
    mood(0.3, 0.5, 0.1, lasting=0.02),
    mood(0.0, 1.0, 0.0),
    mood(1.0, 0.0, 0.0),
)
