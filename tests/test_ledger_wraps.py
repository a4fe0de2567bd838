"""Counters of 32 bits: one that passes its top goes on, one that is reset begins anew."""

from dataclasses import replace
from itertools import accumulate, pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.reading import call
from otel_gpu.ledger import NEAR, Page
from otel_gpu.model import Kind, Metric, Point
from tests.paging import REPLAYS, batch, folded, values

TOP = 2**32
NEAR_TOP, NEAR_0 = TOP - TOP // NEAR, TOP // NEAR
COUNT = Metric(
    name="nvidia.gpu.pcie.replays",
    kind=Kind.COUNTER,
    unit="{replay}",
    brief="Replays.",
    read=call("f"),
    integer=True,
    wraps=TOP,
)


def shown(*raw: int, metric: Metric = COUNT) -> list[Point]:
    """Read these values one after the other, a second apart; give what is published of each."""
    page, points = Page(), list[Point]()
    for second, value in enumerate(raw):
        page = folded(page, batch(float(second), f=value), metrics=[metric])
        points += page.readings[metric.name].points
    return points


def test_past_its_top_it_goes_on_from_where_it_was() -> None:
    points = shown(TOP - 5, 3, 7)
    assert [point.value for point in points] == [TOP - 5, TOP + 3, TOP + 7]
    assert {point.start_ns for point in points} == {None}
    assert all(type(point.value) is int for point in points)


def test_it_may_pass_its_top_again_and_again() -> None:
    assert [point.value for point in shown(TOP - 5, 3, TOP - 5, 3, 9)] == [
        TOP - 5,
        TOP + 3,
        2 * TOP - 5,
        2 * TOP + 3,
        2 * TOP + 9,
    ]


@pytest.mark.parametrize("before", [1, 1000, TOP // 2, NEAR_TOP - 1])
def test_from_anywhere_else_it_was_reset_and_begins_anew(before: int) -> None:
    first, second = shown(before, 0)
    assert (first.value, second.value) == (before, 0)
    assert (first.start_ns, second.start_ns) == (None, 1_000_000_000)


def test_from_near_its_top_to_the_middle_it_was_reset() -> None:
    assert shown(TOP - 2, NEAR_0)[1] == Point(NEAR_0, (), 1_000_000_000)


def test_after_a_reset_its_turns_are_forgotten() -> None:
    points = shown(TOP - 5, 3, 1)
    assert points[2] == Point(1, (), 2_000_000_000)
    assert shown(TOP - 5, 3, 1, 8)[3] == Point(8, (), 2_000_000_000)


def test_a_driver_that_counts_further_after_all_is_believed() -> None:
    assert [point.value for point in shown(TOP - 5, TOP + 5, TOP + 9)] == [
        TOP - 5,
        TOP + 5,
        TOP + 9,
    ]
    assert shown(TOP + 9, 0)[1] == Point(0, (), 1_000_000_000)


def test_one_that_counts_further_after_a_turn_was_reset_then_and_begins_anew() -> None:
    points = shown(TOP - 5, 3, TOP + 5, TOP + 9)
    assert points[1] == Point(TOP + 3)
    assert points[2:] == [Point(TOP + 5, (), 2_000_000_000), Point(TOP + 9, (), 2_000_000_000)]
    assert shown(TOP - 5, 3, 2**63 - 1)[2].value == 2**63 - 1


def test_a_counter_of_more_bits_never_wraps() -> None:
    assert shown(TOP - 5, 3, metric=replace(COUNT, wraps=0))[1] == Point(3, (), 1_000_000_000)


def test_each_series_has_turns_of_its_own() -> None:
    metric = replace(REPLAYS, wraps=TOP)
    page = folded(
        Page(),
        batch(0.0, **{"in": TOP - 5, "out": 5}),
        batch(1.0, **{"in": 3, "out": 6}),
        metrics=[metric],
    )
    assert values(page, metric.name) == [TOP + 3, 6]


def test_the_counters_of_32_bits_in_the_catalog_are_those_of_pcie() -> None:
    assert {metric.name for metric in CATALOG if metric.wraps} == {
        "nvidia.gpu.pcie.replays",
        "nvidia.gpu.pcie.errors",
    }
    assert {metric.wraps for metric in CATALOG} == {0, TOP}


@given(
    begin=st.integers(0, TOP - 2),
    steps=st.lists(st.integers(0, TOP // NEAR - 1), max_size=40),
)
def test_whatever_it_counts_what_is_published_grows_by_just_that(
    begin: int, steps: list[int]
) -> None:
    true = [*accumulate(steps, initial=begin)]
    raw = [value % TOP for value in true]
    assume(TOP - 1 not in raw)  # which is what NVML says when it does not know
    points = shown(*raw)
    assert [point.value for point in points] == true
    assert {point.start_ns for point in points} == {None}


@given(st.lists(st.integers(0, TOP - 2), min_size=1, max_size=40))
def test_it_never_falls_without_a_new_start(raw: list[int]) -> None:
    points = shown(*raw)
    for before, after in pairwise(points):
        assert after.value >= before.value or after.start_ns != before.start_ns
        assert (after.start_ns or 0) >= (before.start_ns or 0)


@given(st.lists(st.integers(0, TOP - 2), min_size=1, max_size=20))
def test_who_replays_the_same_values_gets_the_same_points(raw: list[int]) -> None:
    assert shown(*raw) == shown(*raw)
