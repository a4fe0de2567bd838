"""Means over spans, integrated: exact over what the spans cover, and what they do not is told."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.catalog.profiling import CALL, DRAM, GRAPHICS, PCIE_RECEIVE, SM, Uncovered, integral
from otel_gpu.ledger import Batch, Page, emptied, fold, renewed
from otel_gpu.model import Answer, Code, Kind, Metric, Missing, Point, Query, Reason
from tests.machine import gpu
from tests.paging import GPU, reasons, values

SPAN = Query(CALL, (SM,))
BUSY = Metric(
    name="nvidia.gpu.engine.time",
    kind=Kind.COUNTER,
    unit="s",
    brief="Time.",
    read=integral(SM, scale=1e-2, attributes=(("nvidia.gpu.engine", "sm"),)),
)
BYTES = Metric(
    name="hw.gpu.io",
    kind=Kind.COUNTER,
    unit="By",
    brief="Bytes.",
    read=integral(PCIE_RECEIVE, scale=2**20),
    integer=True,
)
UNCOVERED = Metric(
    name="otel_gpu.gpm.uncovered.time",
    kind=Kind.COUNTER,
    unit="s",
    brief="Time.",
    read=Uncovered(SPAN),
)
METRICS = (BUSY, UNCOVERED)
BOOT_NS = 1_800_000_000_000_000_000  # Unix time at monotonic 0


def answered(answer: Answer, *, at_s: float, number: int = SM) -> Batch:
    """Ask at a monotonic second, some time after the span's end."""
    return Batch(GPU, BOOT_NS + round(at_s * 1e9), at_s, {Query(CALL, (number,)): answer})


def span(mean: float, begin_s: float, end_s: float, *, number: int = SM) -> Batch:
    return answered(Answer(0, [mean, begin_s, end_s]), at_s=end_s + 0.001, number=number)


def folded(*batches: Batch, page: Page | None = None, metrics: Sequence[Metric] = METRICS) -> Page:
    page = page or Page()
    for batch in batches:
        page = fold(page, batch, metrics, 15.0)
    return page


def total(page: Page, metric: Metric = BUSY) -> float:
    (value,) = values(page, metric.name)
    return value


def point(page: Page, metric: Metric = BUSY) -> Point:
    (found,) = page.readings[metric.name].points
    return found


def test_it_is_what_each_span_covered_from_the_first() -> None:
    page = folded(span(50.0, 10.0, 12.0), span(100.0, 12.0, 13.0), span(0.0, 13.0, 20.0))
    assert total(page) == 2.0
    assert total(page, UNCOVERED) == 0.0


def test_it_begins_at_0_when_the_first_span_began() -> None:
    page = folded(span(50.0, 10.0, 12.0))
    for metric in METRICS:
        start_ns = point(page, metric).start_ns
        assert start_ns == pytest.approx(BOOT_NS + 10_000_000_000, abs=1000)
        later = point(folded(span(50.0, 12.0, 13.0), page=page), metric)
        assert later.start_ns == start_ns


def test_no_count_begins_in_the_future_whatever_clock_its_machine_had() -> None:
    ahead = answered(Answer(0, [50.0, 9000.0, 9002.0]), at_s=12.0)
    assert point(folded(ahead)) == Point(1.0, (("nvidia.gpu.engine", "sm"),), ahead.time_ns)


def test_a_span_from_before_the_machine_was_up_is_none() -> None:
    page = folded(answered(Answer(0, [50.0, -1e10, 12.0]), at_s=12.0))
    assert page.sums == {}


def test_bytes_a_second_become_whole_bytes() -> None:
    page = folded(span(3.25, 10.0, 12.0, number=PCIE_RECEIVE), metrics=[BYTES])
    assert values(page, BYTES.name) == [6.5 * 2**20]
    assert isinstance(total(page, BYTES), int)


def test_more_bytes_than_any_memory_has_are_counted_all_the_same() -> None:
    """50 GB/s pass 2**50 bytes in six hours."""
    hours = [
        span(47_684.0, 3600.0 * hour, 3600.0 * hour + 3600.0, number=PCIE_RECEIVE)
        for hour in range(48)
    ]
    page = folded(*hours, metrics=[BYTES])
    assert total(page, BYTES) == pytest.approx(48 * 3600 * 5e10, rel=1e-4)
    assert total(page, BYTES) > 2**50


def test_what_lies_between_two_spans_is_told_and_not_made_up() -> None:
    page = folded(span(50.0, 10.0, 12.0), span(50.0, 15.0, 16.0), span(50.0, 16.5, 17.0))
    assert total(page) == pytest.approx(1.75)
    assert total(page, UNCOVERED) == pytest.approx(3.5)


def test_a_span_that_was_had_before_counts_once() -> None:
    page = folded(span(50.0, 10.0, 12.0), span(50.0, 10.0, 12.0))
    assert total(page) == 1.0
    assert total(page, UNCOVERED) == 0.0


@pytest.mark.parametrize(
    ("begin_s", "end_s"), [(11.0, 13.0), (10.0, 14.0), (9.0, 11.0), (1.0, 2.0), (10.5, 11.5)]
)
def test_a_span_that_overlaps_or_is_older_is_not_added(begin_s: float, end_s: float) -> None:
    page = folded(span(50.0, 10.0, 12.0), span(100.0, begin_s, end_s))
    assert total(page) == 1.0
    after = folded(span(100.0, 14.0, 15.0), page=page)
    assert total(after) == 2.0
    assert total(after, UNCOVERED) == 2.0, "what it may have covered is not guessed"


@pytest.mark.parametrize(
    "value",
    [
        None,
        50.0,
        [],
        [50.0, 12.0],
        [None, 12.0, 13.0],
        [float("nan"), 12.0, 13.0],
        [float("inf"), 12.0, 13.0],
        [-1.0, 12.0, 13.0],
        [100.5, 12.0, 13.0],
        [1e18, 12.0, 13.0],
        [50.0, 13.0, 12.0],
        [50.0, 12.0, 12.0],
        ["50", 12.0, 13.0],
    ],
    ids=str,
)
def test_what_cannot_be_true_is_not_added_and_spoils_nothing(value: object) -> None:
    page = folded(span(50.0, 10.0, 12.0), answered(Answer(0, value), at_s=13.0))
    assert total(page) == 1.0
    after = folded(span(50.0, 13.0, 14.0), page=page)
    assert total(after) == 1.5
    assert total(after, UNCOVERED) == 1.0


def test_bytes_may_be_many_and_have_an_end_too() -> None:
    fast = span(60_000.0, 10.0, 12.0, number=PCIE_RECEIVE)
    wrong = span(1e8, 12.0, 14.0, number=PCIE_RECEIVE)
    assert total(folded(fast, wrong, metrics=[BYTES]), BYTES) == 120_000 * 2**20


def test_before_the_first_pair_there_is_a_gap_and_no_0() -> None:
    page = folded(answered(Answer(Code.NO_DATA), at_s=10.0))
    for metric in METRICS:
        assert values(page, metric.name) == []
        assert reasons(page, metric.name) == [Reason.NOT_READY]
    assert page.gaps[BUSY.name][0].missing.attributes == (("nvidia.gpu.engine", "sm"),)


def test_while_a_pair_is_too_short_it_stands() -> None:
    page = folded(span(50.0, 10.0, 12.0), answered(Answer(Code.NO_DATA), at_s=12.05))
    assert total(page) == 1.0
    assert reasons(page, BUSY.name) == []


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (Code.NOT_SUPPORTED, Reason.UNSUPPORTED),
        (Code.TIMEOUT, Reason.TIMEOUT),
        (Code.NO_PERMISSION, Reason.PERMISSION),
    ],
)
def test_where_it_is_refused_it_is_not_shown_as_if_nothing_was_going_on(
    code: int, reason: Reason
) -> None:
    page = folded(span(50.0, 10.0, 12.0), answered(Answer(code), at_s=13.0))
    for metric in METRICS:
        assert values(page, metric.name) == []
        assert reasons(page, metric.name) == [reason]
    again = folded(span(50.0, 15.0, 16.0), page=page)
    assert total(again) == 1.5
    assert total(again, UNCOVERED) == 3.0


def test_it_outlives_an_outage_and_a_new_enumeration() -> None:
    page = folded(span(50.0, 10.0, 12.0))
    page = emptied(page, gpu(), METRICS, Missing(Reason.LOST, "gone"))
    assert values(page, BUSY.name) == []
    again = folded(span(50.0, 30.0, 32.0), page=renewed(page))
    assert total(again) == 2.0
    assert total(again, UNCOVERED) == 18.0
    assert point(again).start_ns == point(folded(span(50.0, 10.0, 12.0))).start_ns


def test_each_metric_has_an_integral_of_its_own() -> None:
    read = {number: integral(number, scale=1e-2) for number in (GRAPHICS, DRAM)}
    metrics = [
        Metric(name=f"nvidia.gpu.n{number}", kind=Kind.COUNTER, unit="s", brief="T.", read=one)
        for number, one in read.items()
    ]
    page = folded(
        span(50.0, 10.0, 12.0, number=GRAPHICS),
        span(10.0, 10.0, 12.0, number=DRAM),
        metrics=metrics,
    )
    assert {number: one.total for number, one in zip(read, page.sums.values(), strict=True)} == {
        GRAPHICS: 100.0,
        DRAM: 20.0,
    }


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0.1, 60)), min_size=1, max_size=20))
def test_over_contiguous_spans_it_is_exact(parts: list[tuple[float, float]]) -> None:
    edges = [*accumulate((length_s for _, length_s in parts), initial=100.0)]
    spans = [(mean, *edge) for (mean, _), edge in zip(parts, pairwise(edges), strict=True)]
    page = folded(*(span(*one) for one in spans))
    true = fsum(mean / 100 * (end_s - begin_s) for mean, begin_s, end_s in spans)
    assert total(page) == pytest.approx(true, rel=1e-12, abs=1e-12)
    assert total(page, UNCOVERED) == 0.0


@given(mean=st.floats(0, 100), cuts=st.lists(st.floats(100.0, 400.0), max_size=20))
def test_however_the_time_is_split_the_same_work_is_counted(mean: float, cuts: list[float]) -> None:
    edges = sorted({100.0, 400.0, *cuts})
    page = folded(*(span(mean, begin, end) for begin, end in pairwise(edges)))
    assert total(page) == pytest.approx(mean * 3.0, rel=1e-9, abs=1e-9)
    assert total(page, UNCOVERED) == 0.0


ANYHOW = st.lists(
    st.tuples(st.floats(-5, 105), st.floats(0, 100), st.floats(-1, 20), st.booleans()),
    max_size=30,
)


@given(ANYHOW)
def test_whatever_spans_come_it_never_goes_back_and_covers_no_second_twice(
    given_spans: list[tuple[float, float, float, bool]],
) -> None:
    page, before = Page(), {metric.name: 0.0 for metric in METRICS}
    for mean, begin_s, length_s, is_answered in given_spans:
        value = [mean, begin_s, begin_s + length_s]
        answer = Answer(0, value) if is_answered else Answer(Code.NO_DATA)
        page = folded(answered(answer, at_s=begin_s), page=page)
        for metric in METRICS:
            for shown in page.readings[metric.name].points if metric.name in page.readings else ():
                assert shown.value >= before[metric.name]
                before[metric.name] = shown.value
    if SPAN in page.sums:
        one = page.sums[SPAN]
        first_s = (one.start_ns - BOOT_NS) / 1e9
        assert one.uncovered_s + one.total / 100 <= one.end_s - first_s + 1e-6


@given(ANYHOW)
def test_who_replays_the_same_spans_gets_the_same_page(
    given_spans: list[tuple[float, float, float, bool]],
) -> None:
    batches = [
        answered(Answer(0, [mean, begin_s, begin_s + length_s]), at_s=begin_s)
        for mean, begin_s, length_s, _ in given_spans
    ]
    assert folded(*batches) == folded(*batches)
