from __future__ import annotations

from otel_gpu.worker.suspects import FIRST_S, LONGEST_S, Hang, Suspects

NAMES = frozenset({"GPU-a", "0"})


def accused(*times_s: float) -> Suspects:
    suspects = Suspects()
    for time_s in times_s:
        suspects.accuse(Hang("call", "GPU-a", time_s), NAMES, time_s)
    return suspects


def test_a_gpu_that_hung_is_left_out_under_each_of_its_names_for_a_while() -> None:
    suspects = accused(100)
    assert suspects.excluded(100) == NAMES
    assert suspects.excluded(100 + FIRST_S) == frozenset()


def test_each_new_hang_doubles_the_while_up_to_a_limit() -> None:
    assert accused(0, 100).excluded(100 + 2 * FIRST_S - 1) == NAMES
    assert accused(0, 100).excluded(100 + 2 * FIRST_S) == frozenset()
    often = accused(*range(50))
    assert often.excluded(49 + LONGEST_S - 1) == NAMES
    assert often.excluded(49 + LONGEST_S) == frozenset()


def test_a_gpu_that_goes_on_hanging_hangs_since_the_first_time() -> None:
    assert accused(5, 100).hangs == (Hang("call", "GPU-a", 5),)


def test_a_gpu_that_hangs_while_it_is_opened_is_known_by_its_index() -> None:
    suspects = accused(5)
    suspects.accuse(Hang("nvmlDeviceGetHandleByIndex", "0", 100), frozenset({"0"}), 100)
    assert suspects.hangs == (Hang("nvmlDeviceGetHandleByIndex", "GPU-a", 5),)
    assert suspects.excluded(100 + 2 * FIRST_S - 1) == NAMES


def test_an_answer_clears_its_gpu_and_no_other() -> None:
    suspects = accused(0)
    suspects.accuse(Hang("call", "GPU-b", 1), frozenset({"GPU-b", "1"}), 1)
    suspects.clear(["GPU-a"])
    assert suspects.hangs == (Hang("call", "GPU-b", 1),)


def test_an_enumeration_clears_who_was_in_it_and_is_gone() -> None:
    suspects = accused(0)
    suspects.settle({"GPU-b"}, FIRST_S - 1)  # it was left out: nothing is known of it
    assert suspects.hangs
    suspects.settle({"GPU-a"}, FIRST_S)  # it is there again, and has not answered yet
    assert suspects.hangs
    suspects.settle({"GPU-b"}, FIRST_S)
    assert not suspects.hangs


def test_a_call_about_no_gpu_that_hangs_again_and_again_is_one_hang() -> None:
    suspects = Suspects()
    for time_s in range(3):
        suspects.accuse(Hang("nvmlInitWithFlags", "", time_s), frozenset(), time_s)
    assert suspects.hangs == (Hang("nvmlInitWithFlags", "", 0),)


def test_a_call_about_no_gpu_is_cleared_by_the_next_enumeration() -> None:
    suspects = Suspects()
    suspects.accuse(Hang("nvmlInitWithFlags", "", 0), frozenset(), 0)
    assert suspects.excluded(1) == frozenset()
    suspects.settle({"GPU-a"}, 1)
    assert not suspects.hangs
