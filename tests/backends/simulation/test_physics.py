from __future__ import annotations

from functools import cache
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.backends.simulation.boards import A100, H200, RTX4090, T4
from otel_gpu.backends.simulation.boxes import BOXES
from otel_gpu.backends.simulation.chance import Chance
from otel_gpu.backends.simulation.figures import MEMORY, PAGE, SM, VIDEO, Board
from otel_gpu.backends.simulation.jobs import Phase, idle, timetable
from otel_gpu.backends.simulation.physics import IDLE, SW_POWER_CAP, Gpu

MINUTE = 3000  # ticks
TICKS = st.integers(0, 2_000_000)
BOARDS = st.sampled_from([box.board for box in BOXES.values()])


def working(board: Board, thirst: float, load: float = 1.0, place: int = 0) -> Gpu:
    """A GPU that has always done the same."""
    return Gpu(board, [Phase(60, (load, load), (0.5, 0.5), thirst)], place, Chance("work"))


def resting(board: Board, place: int = 0) -> Gpu:
    return Gpu(board, [idle(60)], place, Chance("rest", place))


@cache
def trained(model: str, place: int) -> Gpu:
    board = next(box.board for box in BOXES.values() if box.board.model == model)
    return Gpu(board, timetable(Chance("train", place), 0.8), place, Chance("train", place))


def training(board: Board, place: int = 0) -> Gpu:
    """A GPU that runs one job after the other; made once, for it has no state to spoil."""
    return trained(board.model, place)


def test_an_idle_h200_is_as_the_recorded_one() -> None:
    gpu = resting(H200)
    assert gpu.watts(100) == pytest.approx(82, rel=0.07)
    assert gpu.celsius(100) == 37
    assert gpu.margin(100) == 50
    assert gpu.utilization(100) == 0
    assert [gpu.megahertz(domain, 100) for domain in (SM, MEMORY, VIDEO)] == [345, 3201, 765]
    assert gpu.reasons(100) == IDLE
    assert gpu.performance_state(100) == 0
    assert gpu.memory_watts(100) == pytest.approx(34, abs=2)


def test_an_h200_at_its_power_cap_is_as_the_recorded_one() -> None:
    gpu = working(H200, thirst=1.4)
    assert gpu.average_watts(100) == pytest.approx(700, rel=0.02)
    assert max(gpu.watts(tick) for tick in range(500)) > 715
    assert gpu.celsius(100) == 69
    assert gpu.celsius(100) + gpu.margin(100) == 87
    assert gpu.reasons(100) == SW_POWER_CAP
    assert 1600 <= gpu.megahertz(SM, 100) <= 1700
    assert gpu.megahertz(MEMORY, 100) == 3201
    assert gpu.memory_watts(100) == pytest.approx(180, rel=0.05)


def test_the_harder_a_job_pulls_at_the_cap_the_lower_is_the_clock() -> None:
    clocks = [working(H200, thirst=thirst).megahertz(SM, 100) for thirst in (0.9, 0.999, 1.1, 1.5)]
    assert clocks == sorted(clocks, reverse=True)
    assert clocks[0] == 1980
    assert len(set(clocks)) == 4


def test_time_at_the_cap_counts_every_second_of_it_and_no_other() -> None:
    capped, free = working(H200, thirst=1.4), working(H200, thirst=0.9)
    assert capped.capped_seconds(MINUTE) - capped.capped_seconds(0) == pytest.approx(60)
    assert free.capped_seconds(MINUTE) == 0
    assert free.reasons(100) == 0


def test_power_lies_between_idle_and_the_cap_and_follows_the_load() -> None:
    watts = [working(H200, 0.9, load).average_watts(100) for load in (0.1, 0.4, 0.7, 1.0)]
    assert watts == sorted(watts)
    assert watts[-1] == pytest.approx(0.9 * 700, rel=0.01)


def test_temperature_follows_power_slowly() -> None:
    phases = [idle(300), Phase(300, (1, 1), (0.5, 0.5), 1.2)]
    gpu = Gpu(H200, phases, 0, Chance("warm"))
    cold, soon, later, hot = (gpu.celsius(round(second * 50)) for second in (299, 305, 325, 599))
    assert cold < soon < later < hot
    assert gpu.average_watts(302 * 50) == pytest.approx(700, rel=0.02)
    assert hot - soon > 20


@given(BOARDS, st.sampled_from([0, 1, 7]), TICKS)
def test_activity_stays_a_little_under_the_load_and_training_under_it(
    board: Board, place: int, tick: int
) -> None:
    gpu, second = training(board, place), tick / 50
    activity, training_now = gpu.activity.at(second), gpu.training.at(second)
    assert 0 <= training_now <= activity <= 0.99
    assert abs(gpu.utilization(tick) - activity) < 0.12
    assert (activity > 0) == gpu.busy(tick) == bool(gpu.job(tick))


def test_each_job_of_each_cycle_has_a_name_of_its_own() -> None:
    gpu = Gpu(H200, [idle(5), *(Phase(5, (1, 1), (0.5, 0.5), 1, n) for n in (0, 1))], 0, Chance(1))
    names = [gpu.job(50 * second) for second in range(0, 30, 5)]
    assert names == ["", "0/0", "0/1", "", "1/0", "1/1"]


@given(BOARDS, st.sampled_from([0, 1, 7]), TICKS)
def test_every_state_is_possible(board: Board, place: int, tick: int) -> None:
    gpu = training(board, place)
    assert 0 <= gpu.bandwidth(tick) <= gpu.utilization(tick) <= 1
    assert 0.9 * gpu.idle_w < gpu.watts(tick) < 1.12 * board.cap_w
    assert 25 <= gpu.celsius(tick) <= board.hottest
    assert gpu.busy(tick) == (gpu.utilization(tick) > 0) == (not gpu.reasons(tick) & IDLE)
    for domain, clock in board.clocks.items():
        assert clock.idle <= gpu.megahertz(domain, tick) <= clock.busy <= clock.most
    assert gpu.megahertz(SM, tick) == gpu.megahertz(SM - 1, tick)


@given(st.sampled_from([H200, A100, RTX4090, T4]), st.sampled_from([0, 1, 63]), TICKS)
def test_allocated_memory_is_whole_pages_and_leaves_the_reserved_part_alone(
    board: Board, place: int, tick: int
) -> None:
    used = training(board, place).memory(tick)
    assert used % PAGE == 0
    assert 0 < used <= board.memory_total - board.memory_reserved


def test_neighbours_that_are_all_idle_still_differ() -> None:
    gpus = [resting(H200, place) for place in range(8)]
    assert len({gpu.celsius(0) for gpu in gpus}) == 8
    assert len({gpu.memory(0) for gpu in gpus}) == 8
    assert len({round(1000 * gpu.average_watts(0)) for gpu in gpus}) == 8
    assert len({int(gpu.joules(0)) for gpu in gpus}) == 8


def test_energy_began_days_before_and_agrees_with_power_within_one_percent() -> None:
    gpu = training(H200)
    start, end = 5 * MINUTE, 15 * MINUTE
    sampled = mean(gpu.watts(tick) for tick in range(start, end, 7))
    energy = gpu.joules(end) - gpu.joules(start)
    assert energy == pytest.approx(sampled * 600, rel=0.01)
    assert gpu.joules(start) > 3 * 86_400 * gpu.idle_w


def test_boards_with_a_slow_idle_state_leave_it_when_they_work() -> None:
    assert resting(T4).performance_state(0) == 8
    assert resting(T4).megahertz(MEMORY, 0) == 405
    assert working(T4, 1.0).performance_state(0) == 0
    assert working(T4, 1.0).megahertz(MEMORY, 0) == 5000


def test_fans_rest_while_it_is_cool_and_each_turns_a_little_differently() -> None:
    assert resting(RTX4090).fan(0, 0) == 0
    fast = [working(RTX4090, 1.2).fan(number, 0) for number in range(3)]
    assert 0.5 < fast[0] < fast[1] < fast[2] <= 1


def test_media_engines_are_busy_where_a_board_is_used_for_them() -> None:
    encoder, decoder, jpeg, ofa = working(T4, 1.0).media(0)
    assert 0 < encoder < decoder < 0.6
    assert jpeg == ofa == 0


def test_a_job_brings_data_over_pcie_and_less_goes_back() -> None:
    out, into = working(H200, 1.0).pcie(0)
    still_out, still_into = resting(H200).pcie(0)
    assert 1e6 > still_out > still_into > 0
    assert into > out > 20 * still_out


def test_a_gpu_that_is_split_has_the_memory_of_its_instances_allocated() -> None:
    shares = BOXES["a100-mig"].shares(0)
    gpu = Gpu(A100, timetable(Chance("mig"), 0.9), 0, Chance("mig"), shares)
    for tick in range(0, 20 * MINUTE, 997):
        parts = [instance.memory(tick) for instance in gpu.instances]
        assert sum(parts) < gpu.memory(tick) < sum(parts) + 64 * PAGE
        for instance, used in zip(gpu.instances, parts, strict=True):
            assert used % PAGE == 0
            assert 0 < used <= instance.total - instance.reserved
        assert len(set(parts)) == len(parts)
