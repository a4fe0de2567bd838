"""Pairs of samples: contiguous for each metric, each sample freed once, and no 0 made up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.backends.gpm import SHORTEST_S, Gpm
from otel_gpu.model import Answer, Code

GPU, HANDLE = "GPU-a", "handle of GPU-a"
NO_DATA = Answer(Code.NO_DATA)


@dataclass
class Memory:
    """What a sample holds: when it was taken, of which GPU."""

    uuid: str
    at_s: float


@dataclass
class Driver:
    """A driver with GPM, and a clock that the test moves; it hands out memory and takes it back.

    A metric's mean over a pair is its number times the length of the pair.
    """

    now_s: float = 1000.0
    code: int = 0
    refuses: int = 0
    read_code: int = 0
    means: dict[int, Answer] = field(default_factory=dict)
    taken: list[Memory] = field(default_factory=list)
    freed: list[Memory] = field(default_factory=list)
    pairs: list[tuple[Memory, Memory, list[int]]] = field(default_factory=list)

    def support(self, uuid: str, handle: object) -> int:
        assert handle == f"handle of {uuid}"
        return self.code

    def take(self, uuid: str, handle: object) -> Answer:
        assert handle == f"handle of {uuid}"
        if self.refuses:
            return Answer(self.refuses)
        self.taken.append(Memory(uuid, self.now_s))
        return Answer(0, self.taken[-1])

    def between(self, uuid: str, first: Memory, second: Memory, ids: Sequence[int]) -> list[Answer]:
        assert first.uuid == second.uuid == uuid
        assert not any(map(self.is_free, (first, second))), "it was given back"
        self.pairs.append((first, second, list(ids)))
        length_s = second.at_s - first.at_s
        own = (self.means.get(one, Answer(0, one * length_s)) for one in ids)
        return [Answer(self.read_code) if self.read_code else answer for answer in own]

    def free(self, sample: Memory) -> None:
        assert not self.is_free(sample), "it was given back before"
        self.freed.append(sample)

    def is_free(self, sample: Memory) -> bool:
        return any(one is sample for one in self.freed)

    @property
    def held(self) -> int:
        return len(self.taken) - len(self.freed)


@dataclass
class Rig:
    driver: Driver = field(default_factory=Driver)

    def __post_init__(self) -> None:
        self.gpm = Gpm(self.driver, clock=lambda: self.driver.now_s)

    def ask(self, *ids: int, after_s: float = 0.0, uuid: str = GPU) -> list[Answer]:
        self.driver.now_s += after_s
        answers = self.gpm.ask(uuid, f"handle of {uuid}", ids)
        assert list(answers) == list(ids)
        return list(answers.values())


def test_the_first_read_has_no_baseline_and_so_no_data() -> None:
    rig = Rig()
    assert rig.ask(2, 10) == [NO_DATA, NO_DATA]
    assert rig.driver.pairs == []
    assert rig.driver.held == 1


def test_then_each_mean_comes_with_the_times_of_its_pair() -> None:
    rig = Rig()
    rig.ask(2, 10)
    assert rig.ask(2, 10, after_s=2.0) == [
        Answer(0, [4.0, 1000.0, 1002.0]),
        Answer(0, [20.0, 1000.0, 1002.0]),
    ]
    assert len(rig.driver.pairs) == 1, "both metrics in one call"


def test_each_pair_begins_where_the_last_one_of_its_metric_ended() -> None:
    rig = Rig()
    rig.ask(2)
    ends = [rig.ask(2, after_s=1.0 + place / 10)[0].value[1:] for place in range(5)]
    assert all(before[1] == after[0] for before, after in pairwise(ends))


def test_metrics_of_different_tiers_have_pairs_of_different_lengths() -> None:
    rig = Rig()
    rig.ask(2, 60)
    for _ in range(4):
        rig.ask(2, after_s=1.0)
    fast, slow = rig.ask(2, 60, after_s=1.0)
    assert fast.value[1:] == [1004.0, 1005.0]
    assert slow.value[1:] == [1000.0, 1005.0]
    assert rig.driver.held == 1, "both begin anew at the one sample"


def test_a_metric_that_is_asked_for_later_begins_then() -> None:
    rig = Rig()
    rig.ask(2)
    assert rig.ask(2, 20, after_s=1.0)[1] == NO_DATA
    assert rig.ask(20, after_s=1.0) == [Answer(0, [20.0, 1001.0, 1002.0])]


def test_a_pair_that_is_too_short_is_not_read_and_keeps_its_baseline() -> None:
    rig = Rig()
    rig.ask(2)
    assert rig.ask(2, after_s=SHORTEST_S / 2) == [NO_DATA]
    assert rig.driver.pairs == []
    assert rig.ask(2, after_s=SHORTEST_S)[0].value[1:] == [1000.0, 1000.0 + 1.5 * SHORTEST_S]
    assert rig.driver.held == 1


def test_the_shortest_pair_is_longer_than_the_tenth_of_a_second_of_the_driver() -> None:
    assert 0.1 < SHORTEST_S < 0.11


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_no_data(value: float) -> None:
    rig = Rig()
    rig.driver.means[2] = Answer(0, value)
    rig.ask(2, 3)
    number, other = rig.ask(2, 3, after_s=1.0)
    assert number == NO_DATA
    assert other.ok


def test_a_metric_that_is_refused_harms_no_other() -> None:
    rig = Rig()
    rig.driver.means[8] = Answer(Code.NOT_SUPPORTED)
    rig.ask(2, 8)
    assert [answer.code for answer in rig.ask(2, 8, after_s=1.0)] == [0, Code.NOT_SUPPORTED]


def test_a_zero_is_a_zero() -> None:
    rig = Rig()
    rig.driver.means[2] = Answer(0, 0.0)
    rig.ask(2)
    assert rig.ask(2, after_s=1.0) == [Answer(0, [0.0, 1000.0, 1001.0])]


def test_a_gpu_without_gpm_says_so_and_holds_no_memory() -> None:
    rig = Rig(Driver(code=Code.NOT_SUPPORTED))
    assert rig.ask(2, 3) == [Answer(Code.NOT_SUPPORTED)] * 2
    assert rig.driver.taken == []


def test_a_gpu_that_only_does_not_answer_yet_is_asked_again() -> None:
    rig = Rig(Driver(code=Code.NOT_READY))
    assert rig.ask(2) == [Answer(Code.NOT_READY)]
    rig.driver.code = 0
    assert rig.ask(2) == [NO_DATA]
    assert rig.ask(2, after_s=1.0)[0].ok


def test_a_refused_sample_leaves_the_baseline_so_that_nothing_falls_between() -> None:
    rig = Rig()
    rig.ask(2)
    rig.driver.refuses = Code.TIMEOUT
    assert rig.ask(2, after_s=1.0) == [Answer(Code.TIMEOUT)]
    rig.driver.refuses = 0
    assert rig.ask(2, after_s=1.0)[0].value[1:] == [1000.0, 1002.0]


def test_a_pair_that_could_not_be_read_is_over() -> None:
    rig = Rig()
    rig.ask(2)
    rig.driver.read_code = Code.UNKNOWN
    assert rig.ask(2, after_s=1.0) == [Answer(Code.UNKNOWN)]
    rig.driver.read_code = 0
    assert rig.ask(2, after_s=1.0)[0].value[1:] == [1001.0, 1002.0]
    assert rig.driver.held == 1


def test_gpus_have_pairs_of_their_own() -> None:
    rig = Rig()
    rig.ask(2)
    rig.ask(2, after_s=1.0, uuid="GPU-b")
    (answer,) = rig.ask(2, after_s=1.0)
    assert answer.value[1:] == [1000.0, 1002.0]


def test_closing_gives_everything_back_and_the_next_read_begins_anew() -> None:
    rig = Rig()
    rig.ask(2, 3)
    rig.ask(2, after_s=1.0)
    rig.ask(2, after_s=1.0, uuid="GPU-b")
    rig.gpm.close()
    assert rig.driver.held == 0
    rig.gpm.close()
    assert rig.ask(2, after_s=1.0) == [NO_DATA]


STEP = st.tuples(
    st.sampled_from(["GPU-a", "GPU-b"]),
    st.sets(st.integers(1, 5), min_size=1),
    st.sampled_from([0.0, 0.05, 0.099, 0.15, 1.0, 5.0]),
    st.sampled_from([0, 0, 0, Code.TIMEOUT]),
    st.sampled_from([0, 0, 0, Code.UNKNOWN]),
)


@given(st.lists(STEP, max_size=40))
def test_whatever_happens_no_sample_is_lost_or_given_back_twice(
    steps: list[tuple[str, set[int], float, int, int]],
) -> None:
    rig = Rig()
    ends: dict[tuple[str, int], float] = {}
    for uuid, ids, after_s, refuses, read_code in steps:
        rig.driver.refuses, rig.driver.read_code = refuses, read_code
        for one, answer in zip(ids, rig.ask(*ids, after_s=after_s, uuid=uuid), strict=True):
            if answer.ok:
                mean, begin_s, end_s = answer.value
                assert end_s - begin_s >= SHORTEST_S
                assert mean == pytest.approx(one * (end_s - begin_s))
                assert begin_s >= ends.get((uuid, one), 0.0), "pairs of a metric never overlap"
                ends[uuid, one] = end_s
        assert rig.driver.held <= 10, "at most one sample for each metric of each GPU"
    rig.gpm.close()
    assert rig.driver.held == 0
