from __future__ import annotations

from statistics import mean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.backends.simulation.chance import Chance
from otel_gpu.backends.simulation.curve import Curve, Piece
from otel_gpu.backends.simulation.meter import SECOND, TICK_S, Meter

IDLE_W, CAP_W = 80.0, 700.0
TREND = Curve([Piece(3.3, IDLE_W, IDLE_W), Piece(0.5, IDLE_W, CAP_W), Piece(7, CAP_W, CAP_W)])
TICKS = st.integers(-10_000, 500_000_000)


def meter() -> Meter:
    return Meter(TREND, IDLE_W, Chance("meter"))


@given(TICKS, st.integers(1, 300))
def test_energy_is_the_sum_of_all_samples_exactly(first: int, count: int) -> None:
    one = meter()
    summed = sum(one.watts(tick) * TICK_S for tick in range(first + 1, first + count + 1))
    assert one.joules(first + count) - one.joules(first) == pytest.approx(summed, abs=1e-3)


@given(TICKS)
def test_energy_always_grows(tick: int) -> None:
    one = meter()
    assert one.joules(tick + 1) > one.joules(tick)


@given(TICKS)
def test_the_average_is_the_mean_of_the_last_second_of_samples(tick: int) -> None:
    one = meter()
    samples = [one.watts(tick - back) for back in range(SECOND)]
    assert one.average(tick) == pytest.approx(mean(samples), abs=1e-2)


def test_nothing_depends_on_what_was_asked_before() -> None:
    watched, fresh = meter(), meter()
    for tick in range(5000):
        watched.watts(tick)
    for tick in (4000, 17, 4999, 2500):
        assert watched.watts(tick) == fresh.watts(tick)
        assert watched.joules(tick) == fresh.joules(tick)


def test_samples_shake_about_a_steady_power_as_those_of_an_h200_do() -> None:
    steady = Meter(Curve([Piece(60, CAP_W, CAP_W)]), IDLE_W, Chance("steady"))
    samples = [steady.watts(tick) for tick in range(3000)]
    assert mean(samples) == pytest.approx(CAP_W, abs=0.5)
    assert 15 < pstdev(samples) < 40
    assert 720 < max(samples) < 770
    assert min(samples) > 630


def test_an_idle_board_hardly_shakes() -> None:
    still = Meter(Curve([Piece(60, IDLE_W, IDLE_W)]), IDLE_W, Chance("still"))
    samples = [still.watts(tick) for tick in range(500)]
    assert max(samples) - min(samples) < 2
