"""A planted machine under the agent's own worker and sampler, asked for everything round by round.

In every round the numbers are others. First everything is offered, but of several sources of one
thing only one, so that each path of a record is walked. Then nearly half of all questions is
refused, each time others, so that any question is refused once while any other is not: a record
that falls back on what is not the same thing shows it then.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import TypeVar

from otel_gpu.backends.nvml import PROCESSES, nvml
from otel_gpu.backends.processes import host_pids
from otel_gpu.model import Metric, Point, Query, Snapshot
from otel_gpu.sampler import Plan, Sampler, tiers
from otel_gpu.sweep import intervals
from otel_gpu.worker.supervisor import Supervisor
from tests.fake_nvml.facts import METRIC, Source, Words
from tests.fake_nvml.machine import Device, FakeNvml
from tests.fake_nvml.planting import BASICS, MIG_MODE, P2P, Raw, boards, line, numbers, plant
from tests.fake_nvml.scenes import scene
from tests.fake_nvml.told import Made, Told

K = TypeVar("K")
V = TypeVar("V")

FULL_ROUNDS = 5  # enough for a pattern of each flag's own
WINDOW_S = 15.0
TIER_S = 0.1  # everything is due in every sweep
GPM_S = 0.11  # nvml.h: two samples are 100 ms apart at least
NOT_SUPPORTED = 3
C2C = (Query(METRIC, (100,)), Query(METRIC, (101,)))


@dataclass(frozen=True)
class Round:
    """What each board was told and must lead to, and what the agent published then."""

    told: Mapping[str, Told]
    made: Mapping[str, Sequence[Made]]
    snapshot: Snapshot

    @cached_property
    def sources(self) -> Mapping[tuple[str, Words], Sequence[Source]]:
        """Give what was offered, by board and by the words of a metric's name."""
        return grouped(
            (board, x.thing.name, x) for board, told in self.told.items() for x in told.raw
        )

    @cached_property
    def points_made(self) -> Mapping[tuple[str, Words], Sequence[Made]]:
        """Give what is made of several answers, likewise."""
        return grouped((board, x.thing.name, x) for board, made in self.made.items() for x in made)

    @cached_property
    def published(self) -> Mapping[tuple[str, str], Sequence[Point]]:
        """Give the points, by UUID and by the name of a metric."""
        return {(x.device, x.metric.name): x.points for x in self.snapshot.readings}


def grouped(rows: Iterable[tuple[str, K, V]]) -> Mapping[tuple[str, K], Sequence[V]]:
    """Group rows by their first two columns."""
    groups: dict[tuple[str, K], list[V]] = defaultdict(list)
    for first, second, value in rows:
        groups[first, second].append(value)
    return groups


class Rig:
    """Owns the worker; `rounds` lets it go."""

    def __init__(self, fake: FakeNvml, metrics: Sequence[Metric]) -> None:
        self._fake = fake
        self._boards = boards(fake)
        self._asked = sorted({query for one in metrics for query in one.read.queries}, key=str)
        self._driver = Supervisor("nvml")
        every = intervals(metrics, tiers(TIER_S, TIER_S, TIER_S), lambda _: None)
        plan = Plan(metrics=tuple(metrics), every=every, window_s=WINDOW_S)
        self._sampler = Sampler(self._driver, plan)

    def rounds(self, full: int = FULL_ROUNDS) -> list[Round]:
        """Go through all rounds, or through fewer of those in which everything is offered."""
        refusals = refused_rounds(len(self._asked))
        turns = [*range(full), *range(FULL_ROUNDS, FULL_ROUNDS + refusals)]
        try:
            return [self._round(turn) for turn in turns]
        finally:
            self._driver.close()

    def _round(self, turn: int) -> Round:
        scenes = {board: scene(board, turn) for board in self._boards}
        told = {}
        for board, raw in numbers(turn).items():
            lines, made = scenes[board]
            for call, values in lines.items():
                self._boards[board].says(call, values)
            told[board] = self._tell(board, raw, made, turn)
        self._fake.write()
        self._driver.reopen()  # what is read once is read anew, and nothing counts as refused
        self._sampler.step()
        if turn < FULL_ROUNDS and any(query.call == METRIC for query in self._asked):
            time.sleep(GPM_S)
            self._sampler.step()
        points = {board: made for board, (_, made) in scenes.items()}
        return Round(told, points, self._sampler.snapshot)

    def _tell(self, board: str, raw: Raw, made: Sequence[Made], turn: int) -> Told:
        device = self._boards[board]
        plant(device, raw)
        if turn < FULL_ROUNDS:
            offered = one_of_each(raw, self._asked, turn)
            offered |= {query for one in made for query in one.queries if query in self._asked}
        else:
            # These rounds are too short for GPM.
            offered = {x for x in some(self._asked, turn - FULL_ROUNDS) if x.call != METRIC}
        offered |= {query for query in self._asked if query.call == MIG_MODE}
        refuse(device, set(self._asked) - offered)
        known = frozenset(filter(knows, offered))
        said = {source: value for source, value in raw.items() if source.query in known}
        return Told(board, turn, said, known)


def one_of_each(raw: Raw, asked: Sequence[Query], turn: int) -> set[Query]:
    """Choose a question for each thing, another one in each round."""
    alike: dict[object, list[Source]] = defaultdict(list)
    for source in raw:
        if source.thing.name and source.query in asked and knows(source.query):
            alike[source.thing].append(source)
    return {sources[turn % len(sources)].query for sources in alike.values()}


def refused_rounds(count: int) -> int:
    """Give how many rounds it takes to refuse any of so many questions without any other.

    Each is refused in a set of rounds of its own. Different sets of one size never hold one
    another, and there are most of those that take half of the rounds (Sperner's theorem).
    """
    rounds = 1
    while comb(rounds, rounds // 2) < count:
        rounds += 1
    return rounds


def some(asked: Sequence[Query], turn: int) -> set[Query]:
    """Choose the questions that are not refused in a round."""
    rounds = refused_rounds(len(asked))
    sets = combinations(range(rounds), rounds // 2)
    return {query for query, refused in zip(asked, sets, strict=False) if turn not in refused}


NEEDS: Mapping[Query | str, str] = {
    "nvmlDeviceGetMemoryInfo_v2": "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetUnrepairableMemoryFlag_v1": "nvmlInit",
    "nvmlDeviceGetGpuFabricInfoV": "c_nvmlGpuFabricInfo_v2_t",
    METRIC: METRIC,
    **dict.fromkeys(C2C, "nvmlDeviceGetC2cModeInfoV"),
}
"""What pynvml must have for a question, where that is not the function of the same name."""


def knows(query: Query) -> bool:
    """Whether the backend can ask this here: not every version of pynvml has every function."""
    if query.call in PROCESSES and not host_pids():
        return False
    return hasattr(nvml, NEEDS.get(query) or NEEDS.get(query.call, query.call))


def refuse(device: Device, queries: Iterable[Query]) -> None:
    """Refuse these questions and no others."""
    device.recover()
    for query in queries:
        if query.call == P2P:
            for index in range(len(BASICS)):
                device.fails(line(Query(P2P, (index, *query.args))), NOT_SUPPORTED)
        else:
            device.fails(line(query), NOT_SUPPORTED)
