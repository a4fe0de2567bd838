from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_gpu.backends.simulation.chance import Chance
from otel_gpu.backends.simulation.jobs import Phase, timetable


def runs(phase: Phase) -> bool:
    return phase.load != (0.0, 0.0)


@settings(max_examples=25)
@given(st.integers(0, 1000), st.floats(0.01, 1))
def test_jobs_run_for_the_share_of_time_that_was_asked_for(seed: int, load: float) -> None:
    phases = timetable(Chance(seed), load)
    busy = sum(phase.seconds for phase in phases if runs(phase))
    assert busy / sum(phase.seconds for phase in phases) == pytest.approx(load)


def test_without_load_nothing_ever_runs() -> None:
    assert not any(map(runs, timetable(Chance("still"), 0)))


def test_with_full_load_something_always_runs() -> None:
    assert all(map(runs, timetable(Chance("busy"), 1)))


@settings(max_examples=25)
@given(st.integers(0, 1000))
def test_loads_and_memory_are_shares_and_an_idle_gpu_has_no_memory(seed: int) -> None:
    for phase in timetable(Chance(seed), 0.7):
        assert phase.seconds > 0
        assert all(0 <= share <= 1 for share in phase.load + phase.memory)
        assert runs(phase) == (phase.memory != (0.0, 0.0)) == (phase.thirst > 0)


def test_every_job_of_a_cycle_has_its_number() -> None:
    busy = [phase.job for phase in timetable(Chance(3), 0.7) if runs(phase)]
    assert busy == sorted(busy)
    assert set(busy) == set(range(12))


def test_the_same_chance_makes_the_same_jobs_and_another_makes_others() -> None:
    assert timetable(Chance(1), 0.8) == timetable(Chance(1), 0.8)
    assert timetable(Chance(1), 0.8) != timetable(Chance(2), 0.8)
