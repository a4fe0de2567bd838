"""Until when a list of processes goes, so that the next mean begins there."""

from typing import Any

import pytest

from otel_gpu.catalog.processes import PROCESS_UTILIZATION
from otel_gpu.ledger import Batch, Page, fold
from otel_gpu.model import Answer, Code, Query
from otel_gpu.sweep import since
from otel_gpu.trails import Trail, marked
from tests.machine import gpu

ASKED = Query("nvmlDeviceGetProcessesUtilizationInfo", (0,))
BUSY = {"pid": 7, "timeStamp": 1_796_000_000_000_000, "smUtil": 40, "memUtil": 10}


def folded(page: Page, answer: Answer, at_s: float) -> Page:
    batch = Batch(gpu(0), 1, at_s, {ASKED: answer})
    return fold(page, batch, (PROCESS_UTILIZATION,), 15.0)


def test_the_first_time_everything_is_asked_for_and_then_what_came_after() -> None:
    page = Page()
    assert since(ASKED, page) == ASKED
    page = folded(page, Answer(0, [BUSY, {**BUSY, "pid": 8, "timeStamp": 5}]), 1.0)
    assert since(ASKED, page) == Query(ASKED.call, (BUSY["timeStamp"],))


def test_where_nothing_came_the_next_mean_begins_where_the_last_ended() -> None:
    page = folded(Page(), Answer(0, [BUSY]), 1.0)
    page = folded(page, Answer(Code.NOT_FOUND), 2.0)
    assert since(ASKED, page) == Query(ASKED.call, (BUSY["timeStamp"],))


@pytest.mark.parametrize(
    "strange", [None, 5, "x", [None], [{}], [{"timeStamp": "x"}], [{"timeStamp": float("nan")}]]
)
def test_what_is_no_list_of_samples_marks_nothing(strange: Any) -> None:
    assert marked(Trail(), strange, 1.0) == Trail()
