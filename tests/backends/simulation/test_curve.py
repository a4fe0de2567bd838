from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_gpu.backends.simulation.curve import (
    Curve,
    Lag,
    Piece,
    clipped,
    excess,
    roughened,
    surplus,
)

VALUES = st.floats(-100, 100).map(lambda value: round(value, 3))
PIECES = st.lists(
    st.builds(Piece, st.floats(0.1, 50).map(lambda value: round(value, 2)), VALUES, VALUES),
    min_size=1,
    max_size=6,
)
MOMENTS = st.floats(-500, 500)

SAW = Curve([Piece(4, 0, 8), Piece(2, 8, 8), Piece(4, 1, 1)])


def test_a_curve_goes_straight_through_each_piece_and_repeats() -> None:
    assert [SAW.at(second) for second in (0, 2, 5, 6, 9.9)] == [0, 4, 8, 1, 1]
    assert SAW.at(12) == SAW.at(2)
    assert SAW.at(-5) == SAW.at(5)


def test_its_integral_is_the_area_under_it() -> None:
    assert SAW.integral(4) == 16
    assert SAW.integral(6) == 32
    assert SAW.integral(10) == 36
    assert SAW.integral(102) == 364
    assert SAW.mean == 3.6


@settings(max_examples=40)
@given(PIECES, MOMENTS, st.floats(0, 100))
def test_the_integral_agrees_with_small_steps(
    pieces: list[Piece], start: float, length: float
) -> None:
    curve, steps = Curve(pieces), 400
    step = length / steps
    summed = sum(curve.at(start + (n + 0.5) * step) * step for n in range(steps))
    jumps = 2 + 2 * len(pieces) * (length / curve.period + 1)
    assert curve.integral(start + length) - curve.integral(start) == pytest.approx(
        summed, abs=jumps * 200 * step + 1e-6
    )


def test_a_piece_without_length_is_no_piece() -> None:
    assert Curve([Piece(0, 9, 9), Piece(1, 2, 2)]).at(0) == 2


@settings(max_examples=40)
@given(PIECES, MOMENTS)
def test_a_clipped_curve_never_exceeds_its_limit_and_is_else_the_same(
    pieces: list[Piece], moment: float
) -> None:
    curve = Curve(pieces)
    assert clipped(curve, 10).at(moment) == pytest.approx(min(curve.at(moment), 10), abs=1e-6)


def test_excess_tells_how_long_a_curve_was_over_its_limit() -> None:
    over = excess(SAW, 4)
    assert over.integral(10) == pytest.approx(4)
    assert [over.at(second) for second in (1, 3, 5, 7)] == [0, 1, 1, 0]


def test_a_curve_that_only_touches_its_limit_does_not_exceed_it() -> None:
    assert excess(SAW, 8).integral(10) == 0


def test_a_surplus_is_a_part_of_the_way_from_the_limit_to_one() -> None:
    ramp = surplus(Curve([Piece(10, 0, 1), Piece(2, 0.1, 0.1)]), 0.2)
    assert [ramp.at(second) for second in (0, 2, 6, 11)] == pytest.approx([0, 0, 0.5, 0])
    assert ramp.integral(12) == pytest.approx(8 * 1 / 2)


@settings(max_examples=40)
@given(PIECES, st.floats(0.5, 20), MOMENTS)
def test_a_roughened_curve_stays_between_its_factors(
    pieces: list[Piece], seconds: float, moment: float
) -> None:
    smooth = Curve(pieces)
    rough = roughened(smooth, seconds, lambda number: (0.9, 1.0, 0.95)[number % 3])
    assert rough.period == pytest.approx(smooth.period)
    low, high = sorted((0.9 * smooth.at(moment), smooth.at(moment)))
    _, place, since = smooth.find(moment)
    if 1e-6 < since < smooth.pieces[place].seconds - 1e-6:
        slack = abs(smooth.pieces[place].slope) * seconds + 1e-6
        assert low - slack <= rough.at(moment) <= high + slack


def test_a_roughened_curve_turns_each_few_seconds_and_where_it_is_zero_not_at_all() -> None:
    seen: list[int] = []

    def factor(number: int) -> float:
        seen.append(number)
        return 0.5

    rough = roughened(Curve([Piece(10, 8, 8), Piece(100, 0, 0)]), 4, factor)
    assert seen == [0, 1]
    assert [piece.seconds for piece in rough.pieces] == pytest.approx([10 / 3] * 3 + [100])
    assert [rough.at(10 * part / 3) for part in (0, 1, 2)] == pytest.approx([8, 4, 4])


@settings(max_examples=40)
@given(PIECES, st.floats(0.5, 80), MOMENTS)
def test_a_lag_obeys_its_equation(pieces: list[Piece], constant: float, moment: float) -> None:
    curve = Curve(pieces)
    lag, step = Lag(curve, constant), 1e-3
    _, place, since = curve.find(moment)
    if since < step or curve.pieces[place].seconds - since < step:
        return
    slope = (lag.at(moment + step) - lag.at(moment - step)) / (2 * step)
    assert slope == pytest.approx((curve.at(moment) - lag.at(moment)) / constant, abs=0.01)


@settings(max_examples=40)
@given(PIECES, st.floats(0.5, 80))
def test_a_lag_never_jumps(pieces: list[Piece], constant: float) -> None:
    curve = Curve(pieces)
    lag, edge = Lag(curve, constant), 0.0
    for piece in curve.pieces:
        edge += piece.seconds
        assert lag.at(edge - 1e-7) == pytest.approx(lag.at(edge + 1e-7), abs=1e-3)


def test_a_lag_settles_where_the_curve_stays() -> None:
    lag = Lag(Curve([Piece(1000, 50, 50), Piece(1000, 90, 90)]), 20)
    assert lag.at(999) == pytest.approx(50)
    assert lag.at(1020) == pytest.approx(90 - 40 / math.e)
    assert lag.at(1999) == pytest.approx(90)
