"""GPM in the catalog: means as they are, and integrals as the ledger made them."""

from typing import Any

import pytest

from otel_gpu.catalog.profiling import (
    C2C_RECEIVE,
    CALL,
    IN_BYTES,
    NVLINK_TRANSMIT,
    PCIE_RECEIVE,
    SM,
    Uncovered,
    gpm,
    highest,
    integral,
    integral_of,
)
from otel_gpu.model import Answer, Attributes, Code, Point, Profile, Query, Reason
from tests.machine import gpu

SM_SPAN = Query(CALL, (SM,))
OF_SM: Attributes = (("nvidia.gpu.engine", "sm"),)
BUSY, UNCOVERED = integral(SM, scale=1e-2, attributes=OF_SM), Uncovered(SM_SPAN)


def world(answer: Answer | None = None, *known: Any) -> dict[Query, Answer]:
    """Answer the question of the SMs, and with what the ledger made of it: `known`."""
    answers = {} if answer is None else {SM_SPAN: answer}
    return answers | ({integral_of(SM_SPAN): Answer(0, known)} if known else {})


class TestMean:
    READ = gpm(SM, scale=1e-2)

    def test_it_is_the_first_of_three_numbers(self) -> None:
        assert self.READ.read(gpu(), world(Answer(0, [93.75, 10.0, 12.0]))) == ([Point(0.9375)], [])

    @pytest.mark.parametrize("value", [[], None, [None, 10.0, 12.0], [float("nan"), 1.0, 2.0]])
    def test_without_a_number_it_is_a_gap(self, value: Any) -> None:
        points, missing = self.READ.read(gpu(), world(Answer(0, value)))
        assert (points, [gap.reason for gap in missing]) == ([], [Reason.INVALID])

    def test_before_the_first_pair_it_is_not_ready(self) -> None:
        points, missing = self.READ.read(gpu(), world(Answer(Code.NO_DATA)))
        assert (points, [gap.reason for gap in missing]) == ([], [Reason.NOT_READY])

    def test_it_may_need_a_larger_profile(self) -> None:
        late = gpm(SM, scale=1e-2, profile=Profile.FULL)
        assert late.at(Profile.STANDARD) is None
        assert late.at(Profile.FULL) == late


class TestIntegral:
    def test_it_asks_for_the_mean(self) -> None:
        assert BUSY.queries == UNCOVERED.queries == (SM_SPAN,)
        assert BUSY.wanted(gpu(), lambda _: False) == (SM_SPAN,)

    def test_it_is_what_the_ledger_made_in_base_units_and_with_its_start(self) -> None:
        answers = world(Answer(0, [93.75, 10.0, 12.0]), 187.5, 3.25, 77)
        assert BUSY.read(gpu(), answers) == ([Point(1.875, OF_SM, 77)], [])
        assert UNCOVERED.read(gpu(), answers) == ([Point(3.25, (), 77)], [])
        pcie = Query(CALL, (PCIE_RECEIVE,))
        answers = {pcie: Answer(0, [2.0, 10.0, 12.0]), integral_of(pcie): Answer(0, (4.0, 0.0, 77))}
        read = integral(PCIE_RECEIVE, scale=2**20)
        assert read.read(gpu(), answers) == ([Point(4 * 2**20, (), 77)], [])

    def test_it_stands_while_a_pair_is_too_short(self) -> None:
        answers = world(Answer(Code.NO_DATA), 187.5, 3.25, 77)
        assert BUSY.read(gpu(), answers) == ([Point(1.875, OF_SM, 77)], [])
        assert UNCOVERED.read(gpu(), answers) == ([Point(3.25, (), 77)], [])

    @pytest.mark.parametrize(
        ("answer", "reason"),
        [
            (Answer(Code.NOT_SUPPORTED), Reason.UNSUPPORTED),
            (Answer(Code.TIMEOUT), Reason.TIMEOUT),
            (Answer(Code.GPU_IS_LOST), Reason.LOST),
        ],
    )
    def test_what_is_refused_is_a_gap_even_if_something_was_counted(
        self, answer: Answer, reason: Reason
    ) -> None:
        for read, attributes in ((BUSY, OF_SM), (UNCOVERED, ())):
            points, missing = read.read(gpu(), world(answer, 187.5, 3.25, 77))
            assert points == []
            assert [(gap.reason, gap.attributes) for gap in missing] == [(reason, attributes)]

    @pytest.mark.parametrize("answer", [None, Answer(Code.NO_DATA), Answer(0, "no span")])
    def test_with_nothing_counted_yet_there_is_no_0(self, answer: Answer | None) -> None:
        for read in (BUSY, UNCOVERED):
            points, missing = read.read(gpu(), world(answer))
            assert (points, [gap.reason for gap in missing]) == ([], [Reason.NOT_READY])

    def test_it_is_in_every_profile_and_says_where_it_comes_from(self) -> None:
        assert BUSY.at(Profile.CORE) == BUSY
        assert BUSY.source == "`nvmlGpmMetricsGet(2)`, integrated over contiguous spans"
        assert UNCOVERED.source == "the spans of `nvmlGpmMetricsGet(2)`"

    def test_two_metrics_have_two_integrals(self) -> None:
        assert integral_of(Query(CALL, (SM,))) != integral_of(Query(CALL, (PCIE_RECEIVE,)))


def test_a_mean_is_at_most_100_percent_or_ten_terabytes_a_second() -> None:
    assert highest(SM_SPAN) == 100.0
    for number in (PCIE_RECEIVE, NVLINK_TRANSMIT, C2C_RECEIVE):
        assert number in IN_BYTES
        assert highest(Query(CALL, (number,))) * 2**20 == pytest.approx(1e13)
