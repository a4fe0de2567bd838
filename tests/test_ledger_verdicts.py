"""Verdicts: of a GPU that is lost they stand, and what they seldom ask serves for a while."""

from dataclasses import replace

import pytest

from otel_gpu.catalog.judging import Judging, Known, one_of, told
from otel_gpu.catalog.reading import call
from otel_gpu.ledger import KEPT_S, Page, emptied, renewed
from otel_gpu.model import Answer, Code, Kind, Metric, Missing, Point, Query, Reason, Tier
from otel_gpu.sweep import questions, shown
from tests.paging import ENERGY, GPU, POWER, batch, folded, reasons, refused, values

STATES = {"ok": "ok", "failed": "failed"}
OFTEN, SELDOM = Query("often"), Query("seldom")


def judged(known: Known) -> list[Point]:
    bad = told(known, OFTEN) or told(known, SELDOM)
    return one_of("hw.state", STATES, "failed" if bad else "ok")


STATUS = Metric(
    name="hw.status",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="State.",
    read=Judging(
        asked=(OFTEN,),
        seldom=(SELDOM,),
        function=judged,
        lost=tuple(one_of("hw.state", STATES, "failed")),
    ),
    integer=True,
)
ALSO_ASKED = replace(POWER, name="nvidia.gpu.x", unit="{x}", read=call("seldom"), tier=Tier.SLOW)
OK, FAILED = [1, 0], [0, 1]
METRICS = (STATUS, POWER, ENERGY)


def lost(page: Page, reason: Reason = Reason.LOST) -> Page:
    return emptied(page, GPU, METRICS, Missing(reason, "why"))


class TestLost:
    def test_of_a_gpu_that_is_lost_that_is_known(self) -> None:
        page = folded(Page(), batch(often=0, power=5000), metrics=METRICS)
        assert values(page, STATUS.name) == OK
        page = lost(page)
        assert values(page, STATUS.name) == FAILED
        assert page.readings.keys() == {STATUS.name}
        assert page.gaps.keys() == {POWER.name, ENERGY.name}

    @pytest.mark.parametrize("reason", [one for one in Reason if one is not Reason.LOST])
    def test_of_one_that_only_does_not_answer_nothing_is_known(self, reason: Reason) -> None:
        page = lost(folded(Page(), batch(often=0), metrics=METRICS), reason)
        assert page.readings == {}
        assert reasons(page, STATUS.name) == [reason]

    def test_a_verdict_that_stands_never_grows_stale(self) -> None:
        ledger = {GPU.uuid: lost(folded(Page(), batch(often=0), metrics=METRICS))}
        for now_s in (0.0, 3600.0, 1e12):
            readings, gaps = shown(ledger, dict.fromkeys((m.name for m in METRICS), 1.0), now_s)
            assert [reading.metric.name for reading in readings] == [STATUS.name]
            assert {gap.missing.reason for gap in gaps} == {Reason.LOST}

    def test_a_verdict_of_a_gpu_that_answers_does(self) -> None:
        ledger = {GPU.uuid: folded(Page(), batch(often=0), metrics=[STATUS])}
        readings, gaps = shown(ledger, {STATUS.name: 5.0}, 100.0)
        assert readings == ()
        assert [gap.missing.reason for gap in gaps] == [Reason.STALE]

    def test_when_it_is_back_it_is_judged_anew(self) -> None:
        page = folded(lost(Page()), batch(9.0, often=0), metrics=METRICS)
        assert values(page, STATUS.name) == OK
        assert page.readings[STATUS.name].read_s == 9.0

    def test_what_it_counted_before_goes_on_with_a_new_start(self) -> None:
        page = lost(folded(Page(), batch(1.0, energy=5000), metrics=METRICS))
        page = folded(page, batch(9.0, energy=1000), metrics=METRICS)
        assert page.readings[ENERGY.name].points == (Point(1.0, (), 9_000_000_000),)

    @pytest.mark.parametrize("code", [Code.GPU_IS_LOST, Code.RESET_REQUIRED])
    def test_that_some_questions_are_still_answered_hides_nothing(self, code: int) -> None:
        page = folded(Page(), batch(often=Answer(code), power=5000), metrics=METRICS)
        assert values(page, STATUS.name) == FAILED
        assert values(page, POWER.name) == [5.0]


class TestSeldom:
    def test_what_is_asked_seldom_is_asked_at_first_and_then_serves(self) -> None:
        assert questions([STATUS], GPU, Page(), 0.0) == (OFTEN, SELDOM)
        page = folded(Page(), batch(10.0, often=0, seldom=1), metrics=[STATUS])
        assert questions([STATUS], GPU, page, 10.0 + KEPT_S - 1) == (OFTEN,)
        page = folded(page, batch(15.0, often=0), metrics=[STATUS])
        assert values(page, STATUS.name) == FAILED
        assert questions([STATUS], GPU, page, 10.0 + KEPT_S) == (OFTEN, SELDOM)

    def test_a_new_answer_takes_its_place(self) -> None:
        page = folded(Page(), batch(0.0, often=0, seldom=1), metrics=[STATUS])
        page = folded(page, batch(60.0, often=0, seldom=0), metrics=[STATUS])
        assert values(page, STATUS.name) == OK
        assert questions([STATUS], GPU, page, 61.0) == (OFTEN,)

    def test_a_refusal_is_not_kept_and_asked_again_at_the_next_sweep(self) -> None:
        page = folded(Page(), refused("seldom", code=Code.TIMEOUT), metrics=[STATUS])
        assert questions([STATUS], GPU, page, 1.0) == (OFTEN, SELDOM)

    def test_a_refusal_that_stays_ends_what_was_kept(self) -> None:
        """MIG was enabled meanwhile, for one: the histogram of the banks is not offered then."""
        page = folded(Page(), batch(0.0, often=0, seldom=1), metrics=[STATUS])
        page = folded(page, refused("seldom", at_s=60.0), metrics=[STATUS])
        page = folded(page, batch(65.0, often=0), metrics=[STATUS])
        assert questions([STATUS], GPU, page, 65.0) == (OFTEN,)
        assert values(page, STATUS.name) == OK

    def test_another_metric_shares_it(self) -> None:

        page = folded(Page(), batch(0.0, often=0, seldom=1), metrics=[STATUS])
        assert questions([ALSO_ASKED], GPU, page, 5.0) == ()
        again = folded(page, batch(5.0), metrics=[ALSO_ASKED])
        assert values(again, ALSO_ASKED.name) == [1]

    def test_a_loss_and_a_new_enumeration_forget_it(self) -> None:
        page = folded(Page(), batch(0.0, often=0, seldom=1), metrics=[STATUS])
        for after in (lost(page), renewed(page)):
            assert questions([STATUS], GPU, after, 1.0) == (OFTEN, SELDOM)
