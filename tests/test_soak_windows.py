from itertools import islice, pairwise

import pytest

from bench.soak.windows import CALM_S, SETTLE_S, Habit, Storm, Timeline, stream

HABITS = {"lost": Habit(10, 2, 5), "hang": Habit(30, 6, 6)}
LENGTHS_S = [240.0, 900.0, 3600.0, 86_400.0]


def told(storm: Storm, seconds: float) -> list[tuple[float, str]]:
    return [(now_s, window.kind) for now_s in range(int(seconds)) for window in storm.at(now_s)]


@pytest.mark.parametrize("seconds", LENGTHS_S)
def test_a_run_has_two_calms_at_least_and_ends_in_one(seconds: float) -> None:
    calms_s = Timeline(seconds).calms_s
    assert len(calms_s) >= 2
    assert calms_s[-1] + CALM_S == pytest.approx(seconds)


@pytest.mark.parametrize("seconds", LENGTHS_S)
def test_calms_lie_apart_and_begin_after_the_warm_up(seconds: float) -> None:
    timeline = Timeline(seconds)
    calms_s = timeline.calms_s
    assert calms_s[0] == timeline.warm_s
    assert all(later - earlier > 2 * CALM_S for earlier, later in pairwise(calms_s))


def test_nothing_goes_wrong_in_a_calm() -> None:
    timeline = Timeline(900.0)
    storm = told(Storm(1, HABITS, timeline), 900)
    assert {kind for _, kind in storm} == HABITS.keys()
    assert not [now_s for now_s, _ in storm if timeline.calm(now_s)]


def test_what_is_felt_for_long_comes_so_early_that_no_measurement_shows_it() -> None:
    timeline = Timeline(3600.0)
    storm = Storm(1, {"hang": Habit(20, 6, 6, after_s=62)}, timeline)
    windows = {window for now_s in range(3600) for window in storm.at(now_s)}
    assert len(windows) > 10
    for window in windows:
        moments = range(int(window.since_s), int(window.felt_s))
        settled = (timeline.calm(s) and timeline.calm(s - SETTLE_S) for s in moments)
        assert not any(settled)


def test_who_begins_late_sees_the_same_storm() -> None:
    timeline = Timeline(900.0)
    whole = told(Storm(1, HABITS, timeline), 900)
    late = Storm(1, HABITS, timeline)
    assert [window.kind for window in late.at(500.0)] == [kind for at, kind in whole if at == 500]


def test_another_seed_is_another_storm() -> None:
    timeline = Timeline(900.0)
    assert told(Storm(1, HABITS, timeline), 900) != told(Storm(2, HABITS, timeline), 900)


def test_windows_come_in_order_and_last_as_long_as_their_kind_does() -> None:
    windows = list(islice(stream(3, "lost", HABITS["lost"]), 200))
    assert all(2 <= window.until_s - window.since_s <= 5 for window in windows)
    gaps_s = [later.since_s - one.until_s for one, later in pairwise(windows)]
    assert min(gaps_s) >= 5
    assert sum(gaps_s) / len(gaps_s) == pytest.approx(10, rel=0.2)
