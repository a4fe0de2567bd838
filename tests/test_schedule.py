"""Slots: each period's own, at whole multiples of it since the start."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.catalog.reading import call
from otel_gpu.model import Kind, Metric
from otel_gpu.schedule import Schedule

START = 5000.25


def metric(name: str) -> Metric:
    return Metric(name=name, kind=Kind.GAUGE, unit="W", brief="Power.", read=call("f"))


FAST, OTHER, SLOW, STATIC = (metric(name) for name in ("fast", "other", "slow", "static"))


def schedule(fast: float = 1.0, slow: float = 5.0) -> Schedule:
    every = {"fast": fast, "other": fast, "slow": slow}
    return Schedule([FAST, OTHER, SLOW, STATIC], every, START)


def due(plan: Schedule, at: float) -> tuple[list[str], int]:
    metrics, missed = plan.due(START + at)
    return [metric.name for metric in metrics], missed


def test_everything_that_has_a_period_is_due_at_the_start() -> None:
    assert due(schedule(), 0) == (["fast", "other", "slow"], 0)


def test_what_has_no_period_is_never_due() -> None:
    assert Schedule([STATIC], {}, START).due(START + 1e6) == ((), 0)


def test_nothing_is_due_twice_in_a_slot() -> None:
    plan = schedule()
    due(plan, 0)
    assert due(plan, 0.999) == ([], 0)


def test_a_slower_tier_falls_on_a_tick_of_the_faster() -> None:
    plan = schedule()
    names = [due(plan, second)[0] for second in range(11)]
    slow = [second for second, found in enumerate(names) if "slow" in found]
    assert slow == [0, 5, 10]
    assert all("fast" in found for found in names)


def test_a_late_sweep_does_not_shift_the_next() -> None:
    plan = schedule()
    due(plan, 0)
    assert due(plan, 1.7) == (["fast", "other"], 0)
    assert plan.next_s() == START + 2


def test_slots_that_passed_meanwhile_are_counted_and_not_made_up_for() -> None:
    plan = schedule()
    due(plan, 0)
    assert due(plan, 4.5) == (["fast", "other"], 3)
    assert due(plan, 4.9) == ([], 0)


def test_a_wake_up_a_hair_before_its_slot_is_in_it() -> None:
    plan = schedule(fast=0.1)
    due(plan, 0)
    for place in range(1, 50):
        names, missed = due(plan, plan.next_s() - START)
        assert "fast" in names, place
        assert missed == 0


def test_the_next_slot_is_that_of_the_soonest_period() -> None:
    plan = schedule(fast=2.0, slow=5.0)
    assert plan.next_s() == START
    due(plan, 0)
    assert plan.next_s() == START + 2
    due(plan, 4)
    assert plan.next_s() == START + 5


def test_without_a_period_there_is_no_next_slot() -> None:
    assert Schedule([STATIC], {}, START).next_s() == math.inf


def test_metrics_keep_their_own_periods() -> None:
    plan = Schedule([FAST, replace(FAST, name="own")], {"fast": 1.0, "own": 3.0}, START)
    names = [due(plan, second)[0] for second in range(7)]
    assert [second for second, found in enumerate(names) if "own" in found] == [0, 3, 6]


@given(
    pauses=st.lists(st.floats(0.01, 30.0), min_size=1, max_size=30),
    period=st.sampled_from([0.1, 0.5, 1.0, 5.0, 60.0]),
)
def test_every_slot_is_given_out_or_counted_as_missed(pauses: list[float], period: float) -> None:
    plan = Schedule([FAST], {"fast": period}, START)
    now, given_out, missed = START, 0, 0
    for pause in pauses:
        now += pause
        metrics, late = plan.due(now)
        given_out += len(metrics)
        missed += late
    slots = (now - START) / period + 1
    assert given_out + missed == pytest.approx(slots, abs=1)
    assert plan.next_s() > now - 1e-6 * period
