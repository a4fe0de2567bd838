"""The budget of series: what is collected fits, stays the same, and what does not is counted."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.budgets.series import Bounds, SeriesBudget
from otel_gpu.catalog.agent import DEVICE_UP, GPM_UNCOVERED_TIME
from otel_gpu.catalog.info import ALLOCATION
from otel_gpu.catalog.processes import PROCESS_MEMORY, PROCESS_UTILIZATION
from otel_gpu.instruments import Shape
from otel_gpu.model import Snapshot
from tests.budgets.box import (
    CORE,
    FULL,
    GPUS,
    METRICS,
    OWN,
    STANDARD,
    USES,
    Collecting,
    Seen,
    Uses,
    pids,
    published,
    size,
)

NOBODY: Uses = {}
PARTS, OWNERS = st.integers(1, 5), st.integers(0, 5)
SERIES = st.integers(1, 150)
MANY: Uses = {(uuid, number): 10 * number for uuid in GPUS for number in range(1, 11)}
ALL = OWN + 3 * 3 * 2 + 3 + 3 * len(MANY)  # with two parts and one owner
TOO_MANY = (
    "budgets.series: 55 series are too many for 30, and 33 are left out; raise it, or "
    "select fewer metrics"
)


def names(seen: Seen) -> set[str]:
    return {name for name, points in seen.items() if points}


@given(USES, PARTS, OWNERS, SERIES)
def test_a_collection_is_never_over_the_budget_but_for_the_agents_own_which_is_always_there(
    uses: Uses, parts: int, owners: int, series: int
) -> None:
    collecting = Collecting(published(uses, parts, owners), series=series)
    for _ in range(2):
        seen = collecting.seen()
        assert size(seen) <= max(series, OWN)
        assert len(seen[DEVICE_UP.name]) == len(seen[GPM_UNCOVERED_TIME.name]) == len(GPUS)


@given(USES, PARTS, OWNERS, SERIES)
def test_within_the_budget_it_is_what_it_would_be_without_one(
    uses: Uses, parts: int, owners: int, series: int
) -> None:
    snapshot = published(uses, parts, owners)
    free = Collecting(snapshot)
    seen = free.seen()
    bounded = Collecting(snapshot, series=max(series, size(seen)))
    assert bounded.seen() == seen
    assert bounded.dropped["series"] == 0


@given(USES, PARTS, OWNERS, SERIES, st.lists(st.integers(0, 1000), min_size=3, max_size=3))
def test_the_same_series_stay_whatever_their_values_become(
    uses: Uses, parts: int, owners: int, series: int, values: list[int]
) -> None:
    collecting = Collecting(published(uses, parts, owners), series=series, processes_per_gpu=99)
    first = {name: set(points) for name, points in collecting.seen().items()}
    for value in values:
        changed = {process: (size * value + 7) % 1001 for process, size in uses.items()}
        collecting.snapshot = published(changed, parts, owners)
        assert {name: set(points) for name, points in collecting.seen().items()} == first


@given(USES, PARTS, OWNERS, SERIES)
def test_a_larger_budget_takes_nothing_away(
    uses: Uses, parts: int, owners: int, series: int
) -> None:
    snapshot = published(uses, parts, owners)
    smaller = Collecting(snapshot, series=series).seen()
    larger = Collecting(snapshot, series=series + 10).seen()
    assert names(smaller) <= names(larger)
    for name in (PROCESS_MEMORY.name, PROCESS_UTILIZATION.name):
        assert pids(smaller[name]) <= pids(larger[name])


@given(USES, PARTS, OWNERS, SERIES)
def test_what_is_left_out_is_counted_once_a_snapshot_however_many_collect_it(
    uses: Uses, parts: int, owners: int, series: int
) -> None:
    snapshot = published(uses, parts, owners)
    every = Collecting(snapshot, processes_per_gpu=99).seen()
    collecting = Collecting(snapshot, series=series, processes_per_gpu=99)
    for sweep in range(1, 4):
        for _ in range(3):
            seen = collecting.seen()
        named = {name: [one for one in points if not rest(one)] for name, points in seen.items()}
        gone = sum(len(points) - len(named[name]) for name, points in every.items())
        assert collecting.dropped == {"series": sweep * gone, "processes_per_gpu": 0}
        collecting.snapshot = published(uses, parts, owners)


def rest(attributes: frozenset[tuple[str, object]]) -> bool:
    return ("nvidia.gpu.process.type", "other") in attributes


class TestOrder:
    """Three GPUs with 10 processes each, two points a metric, one owner."""

    def left(self, series: int) -> set[str]:
        return names(Collecting(published(MANY, 2), series=series).seen())

    def test_processes_go_first_whole_and_the_highest_pids_first(self) -> None:
        seen = Collecting(published(MANY, 2), series=ALL - 1).seen()
        kept = pids(seen[PROCESS_MEMORY.name])
        assert kept == pids(seen[PROCESS_UTILIZATION.name])
        assert set(MANY) - kept == {("GPU-1", 10), ("GPU-2", 10)}
        assert sum(seen[PROCESS_MEMORY.name].values()) == sum(MANY.values())

    def test_then_owners_and_then_metrics_of_the_larger_profiles_whole(self) -> None:
        own = {DEVICE_UP.name, GPM_UNCOVERED_TIME.name}
        expected = [CORE.name, STANDARD.name, FULL.name, ALLOCATION.name]
        sizes = [6, 6, 6, 3]
        for count in range(5):
            series = OWN + sum(sizes[:count])
            assert self.left(series) == own | set(expected[:count])
            if count < 4:
                assert self.left(series + sizes[count] - 1) == own | set(expected[:count])

    def test_a_budget_that_the_agents_own_fills_leaves_them(self) -> None:
        assert self.left(1) == {DEVICE_UP.name, GPM_UNCOVERED_TIME.name}


class TestTelling:
    def states(self, *sweeps: Snapshot, series: int) -> Collecting:
        collecting = Collecting(sweeps[0], series=series)
        for snapshot in sweeps:
            collecting.snapshot = snapshot
            collecting.seen()
        return collecting

    def test_a_change_is_told_once_with_what_to_do(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        sizes = [1, 5, 5, 5, 1, 1]
        self.states(*(published(NOBODY, parts) for parts in sizes), series=30)
        assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
            ("WARNING", TOO_MANY),
            ("INFO", "budgets.series: all series fit into 30 again"),
        ]

    def test_owners_that_grow_in_number_are_counted_with_the_next_snapshot(self) -> None:
        collecting = self.states(published(NOBODY, 1, 1), published(NOBODY, 1, 50), series=60)
        collecting.snapshot = published(NOBODY, 1, 50)
        assert size(collecting.seen()) <= 60
        collecting.snapshot = published(NOBODY, 1, 1)
        assert ALLOCATION.name in names(collecting.seen())


def test_a_supply_that_fails_harms_no_other_metric() -> None:
    collecting = Collecting(published(NOBODY))

    def failing(_snapshot: Snapshot) -> list[tuple[str, object]]:
        raise ValueError("no")

    collecting.instruments._supplies = {ALLOCATION.name: failing}  # type: ignore[dict-item]
    assert len(collecting.instruments.observe(CORE)) == len(GPUS)


def test_other_bounds_hold_from_the_next_collection_and_what_was_counted_stays() -> None:
    collecting = Collecting(published(NOBODY, 5), series=30)
    collecting.seen()
    before = dict(collecting.dropped)
    assert before["series"] > 0
    collecting.instruments.adopt(METRICS, every={}, shape=Shape(), bounds=Bounds())
    assert size(collecting.seen()) == 55
    collecting.instruments.adopt(METRICS, every={}, shape=Shape())
    assert size(collecting.seen()) == 55, "the bounds are those of before"
    assert collecting.dropped == before


def test_the_budget_of_processes_is_told_of_where_they_are_selected() -> None:
    collecting = Collecting(published(NOBODY))
    instruments = collecting.instruments
    assert collecting.dropped == {"series": 0, "processes_per_gpu": 0}
    assert SeriesBudget([CORE], Bounds()).dropped == {"series": 0}
    instruments.adopt([CORE], every={}, shape=Shape())
    assert collecting.dropped == {"series": 0, "processes_per_gpu": 0}, "what was counted stays"


def test_the_defaults_are_those_of_the_configuration() -> None:
    assert Bounds() == (20_000, 20)
