from random import Random

import pytest

from bench.soak.trend import MOST_BLOCKS, blocks, highest, trend, typical


def noisy(seconds: int, per_hour: float, noise: float) -> list[tuple[float, float]]:
    random = Random(5)  # noqa: S311 - noise, not a secret
    return [
        (float(now_s), 80 + per_hour * now_s / 3600 + random.gauss(0, noise))
        for now_s in range(seconds)
    ]


def test_a_straight_line_has_its_slope_and_no_noise() -> None:
    found = trend(noisy(1800, 4.0, 0.0))
    assert found
    assert found.slope == pytest.approx(4.0)
    assert found.noise == pytest.approx(0.0, abs=1e-6)


def test_a_leak_of_an_hour_stands_out_of_its_noise() -> None:
    found = trend(noisy(3600, 5.0, 1.0))
    assert found
    assert found.slope > 1 + found.noise


def test_what_only_swings_does_not() -> None:
    found = trend(noisy(3600, 0.0, 1.0))
    assert found
    assert abs(found.slope) < 1 + found.noise


def test_single_peaks_change_nothing() -> None:
    series = [(now_s, 500.0 if now_s % 97 == 0 else value) for now_s, value in noisy(1800, 4.0, 0)]
    found = trend(series)
    assert found
    assert found.slope == pytest.approx(4.0, abs=0.01)


def test_the_noise_of_a_short_run_is_larger_than_that_of_a_long_one() -> None:
    short, long = trend(noisy(100, 0.0, 1.0)), trend(noisy(3600, 0.0, 1.0))
    assert short
    assert long
    assert short.noise > 10 * long.noise


def test_too_short_a_series_has_no_trend() -> None:
    assert trend(noisy(30, 4.0, 0.0)) is None
    assert trend([]) is None


def test_a_long_series_has_no_more_blocks_than_can_be_compared() -> None:
    assert len(blocks([(float(now_s), 1.0) for now_s in range(86_400)])) <= MOST_BLOCKS + 1


def test_a_part_without_samples_has_no_typical_value() -> None:
    assert typical([(1.0, 5.0)], 2.0, 3.0) is None
    assert highest([(1.0, 5.0)], 2.0, 3.0) == 0.0
