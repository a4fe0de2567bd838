from __future__ import annotations

import pytest

from otel_gpu.worker.failures import WorkerDied, WorkerHung, last_words
from otel_gpu.worker.page import Flight


@pytest.mark.parametrize(
    ("flight", "text"),
    [
        (Flight(1, "GPU-a", "nvmlDeviceGetName"), "nvmlDeviceGetName on GPU GPU-a did not return"),
        (Flight(1, "", "nvmlInitWithFlags"), "nvmlInitWithFlags did not return"),
        (Flight(1, "", ""), "the NVML worker did not return"),
    ],
)
def test_a_hang_says_which_call_and_where(flight: Flight, text: str) -> None:
    assert str(WorkerHung(flight, [])) == text


def test_a_death_says_its_status_its_place_and_its_reason() -> None:
    died = WorkerDied(1, "Traceback\n  File x\nValueError: no", Flight(1, "GPU-a", "call"), [])
    assert str(died) == "the NVML worker ended with status 1 in call on GPU GPU-a: ValueError: no"


def test_of_a_crash_the_line_that_says_so_is_kept() -> None:
    tail = "noise\nFatal Python error: Segmentation fault\n\nCurrent thread:\n  File x\n"
    assert last_words(tail) == "Fatal Python error: Segmentation fault"
    assert last_words("") == "it said nothing"
