"""What is remembered between sweeps, and what new answers make of it."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.ranges import bounds
from otel_gpu.catalog.reading import call, either
from otel_gpu.ledger import (
    RETRY_S,
    Batch,
    Page,
    emptied,
    fold,
    is_lost,
    renewed,
    spread,
)
from otel_gpu.model import (
    Answer,
    Code,
    Kind,
    Metric,
    Missing,
    Point,
    Profile,
    Query,
    Reason,
)
from otel_gpu.sweep import applicable, questions
from tests.machine import gpu, instance
from tests.paging import (
    ENERGY,
    GPU,
    LIMIT,
    PEAK,
    POWER,
    REPLAYS,
    WINDOW_S,
    batch,
    folded,
    reasons,
    refused,
    ring,
    values,
)


class TestFold:
    def test_an_answer_becomes_a_reading_with_the_time_of_its_question(self) -> None:
        page = folded(Page(), batch(7.5, power=68_437))
        reading = page.readings["hw.power"]
        assert (reading.metric, reading.device) == (POWER, GPU.uuid)
        assert reading.points == (Point(68.437),)
        assert (reading.time_ns, reading.read_s) == (7_500_000_000, 7.5)

    def test_a_refusal_ends_the_reading_and_leaves_a_gap(self) -> None:
        page = folded(Page(), batch(power=5), refused("power", code=Code.NOT_READY))
        assert values(page, "hw.power") == []
        assert reasons(page, "hw.power") == [Reason.NOT_READY]

    def test_a_reading_ends_the_gap(self) -> None:
        page = folded(Page(), refused("power", code=Code.TIMEOUT), batch(power=5000))
        assert values(page, "hw.power") == [5.0]
        assert reasons(page, "hw.power") == []

    def test_what_was_not_due_stays_as_it_was(self) -> None:
        page = folded(Page(), batch(1.0, power=5000))
        assert folded(page, batch(2.0, energy=7), metrics=[ENERGY]).readings["hw.power"].read_s == 1

    def test_a_gap_names_its_gpu_and_its_metric(self) -> None:
        (gap,) = folded(Page(), refused("power")).gaps["hw.power"]
        assert (gap.metric, gap.device) == ("hw.power", GPU.uuid)

    def test_folding_changes_nothing_that_was_there(self) -> None:
        page = folded(Page(), batch(power=5000))
        folded(page, refused("power"))
        assert values(page, "hw.power") == [5.0]


class TestRange:
    @pytest.mark.parametrize("raw", [-1, 20_000_001, 10**12])
    def test_what_cannot_be_true_is_a_gap_with_the_value_in_it(self, raw: int) -> None:
        page = folded(Page(), batch(power=raw))
        assert values(page, "hw.power") == []
        (gap,) = page.gaps["hw.power"]
        assert gap.missing.reason is Reason.INVALID
        assert gap.missing.detail == f"{raw / 1000!r} W cannot be true"

    def test_the_ends_of_the_range_are_true(self) -> None:
        assert values(folded(Page(), batch(power=0)), "hw.power") == [0.0]
        assert values(folded(Page(), batch(power=20_000_000)), "hw.power") == [20_000.0]

    def test_a_count_that_is_rounded_out_of_the_range_is_not_true_either(self) -> None:
        rate = replace(POWER, unit="{frame}/s", read=call("power"))
        page = folded(Page(), batch(power=2**63 - 1), metrics=[rate])
        assert page.readings == {}
        assert [gap.missing.reason for gap in page.gaps[rate.name]] == [Reason.INVALID]

    def test_one_value_out_of_range_harms_no_other(self) -> None:
        page = folded(Page(), batch(**{"in": 5, "out": -5}), metrics=[REPLAYS])
        assert values(page, "nvidia.gpu.pcie.replays") == [5]
        (gap,) = page.gaps["nvidia.gpu.pcie.replays"]
        assert gap.missing.attributes == (("way", "out"),)

    @pytest.mark.parametrize(
        ("unit", "low", "high"),
        [
            ("1", 0, 1),
            ("Cel", -50, 200),
            ("W", 0, 20_000),
            ("Hz", 0, 1e11),
            ("By", 0, 2**50),
            ("By/s", 0, 1e13),
            ("{pstate}", 0, 15),
            ("{error}", 0, 2**63 - 1),
        ],
    )
    def test_each_unit_has_the_range_that_was_designed(
        self, unit: str, low: float, high: float
    ) -> None:
        assert bounds(replace(POWER, unit=unit)) == (low, high)

    @pytest.mark.parametrize(("integer", "kind"), [(True, int), (False, float)])
    def test_counts_are_ints_and_measures_are_floats(
        self, *, integer: bool, kind: type[int | float]
    ) -> None:
        metric = replace(POWER, read=call("f"), integer=integer)
        for raw in (5, 5.0):
            page = folded(Page(), batch(f=raw), metrics=[metric])
            (value,) = values(page, "hw.power")
            assert (value, type(value)) == (5, kind)


class TestSupport:
    TWO = replace(POWER, read=either(call("first"), call("second")))

    @pytest.mark.parametrize(
        "code",
        [
            Code.NOT_SUPPORTED,
            Code.FUNCTION_NOT_FOUND,
            Code.ARGUMENT_VERSION_MISMATCH,
            Code.INVALID_ARGUMENT,
        ],
    )
    def test_a_lasting_refusal_is_asked_again_after_about_an_hour(self, code: int) -> None:
        page = folded(Page(), refused("power", code=code, at_s=100.0))
        again_s = page.refused[Query("power")].again_s
        assert 0.9 * RETRY_S <= again_s - 100.0 <= 1.1 * RETRY_S
        assert questions([POWER], GPU, page, 100.0 + 0.89 * RETRY_S) == ()
        assert questions([POWER], GPU, page, again_s) == (Query("power"),)

    @pytest.mark.parametrize(
        "code",
        [
            Code.NO_PERMISSION,
            Code.NOT_FOUND,
            Code.TIMEOUT,
            Code.GPU_IS_LOST,
            Code.NO_DATA,
            Code.NOT_READY,
            Code.UNKNOWN,
            77,
        ],
    )
    def test_any_other_refusal_is_asked_again_at_the_next_sweep(self, code: int) -> None:
        page = folded(Page(), refused("power", code=code))
        assert page.refused == {}
        assert questions([POWER], GPU, page, 0.0) == (Query("power"),)

    def test_while_a_refusal_is_remembered_its_gap_stands(self) -> None:
        page = folded(Page(), refused("power"), batch(1.0), batch(2.0))
        assert reasons(page, "hw.power") == [Reason.UNSUPPORTED]

    def test_asked_again_and_refused_again_it_is_put_off_once_more(self) -> None:
        page = folded(Page(), refused("power", at_s=0.0))
        first_s = page.refused[Query("power")].again_s
        page = folded(page, refused("power", at_s=first_s))
        assert page.refused[Query("power")].again_s == pytest.approx(2 * first_s)

    def test_asked_again_and_answered_the_refusal_is_forgotten(self) -> None:
        page = folded(Page(), refused("power"), batch(4000.0, power=5000))
        assert page.refused == {}
        assert page.served == {Query("power")}
        assert values(page, "hw.power") == [5.0]

    def test_an_invalid_argument_after_an_answer_is_not_held_against_the_gpu(self) -> None:
        page = folded(Page(), batch(power=5000), refused("power", code=Code.INVALID_ARGUMENT))
        assert page.refused == {}
        assert questions([POWER], GPU, page, 0.0) == (Query("power"),)
        assert reasons(page, "hw.power") == [Reason.UNSUPPORTED]

    def test_not_supported_after_an_answer_is_believed(self) -> None:
        """MIG was enabled meanwhile, for one."""
        page = folded(Page(), batch(power=5000), refused("power"))
        assert page.served == frozenset()
        assert questions([POWER], GPU, page, 0.0) == ()

    def test_the_second_path_is_not_asked_any_more_once_the_first_serves(self) -> None:
        page = folded(Page(), batch(first=5000, second=6000), metrics=[self.TWO])
        assert values(page, "hw.power") == [5000.0]
        assert questions([self.TWO], GPU, page, 0.0) == (Query("first"),)

    def test_where_the_first_path_is_refused_only_the_second_is_asked(self) -> None:
        answers = batch(first=Answer(Code.NOT_SUPPORTED), second=6000)
        page = folded(Page(), answers, metrics=[self.TWO])
        assert values(page, "hw.power") == [6000.0]
        assert questions([self.TWO], GPU, page, 0.0) == (Query("second"),)

    def test_nothing_new_is_learnt_from_the_same_answers(self) -> None:
        page = folded(Page(), batch(power=5000))
        again = folded(page, batch(power=5000))
        assert again.served is page.served
        assert again.refused is page.refused

    def test_retries_of_many_gpus_do_not_come_at_once(self) -> None:
        moments = {spread(f"GPU-{n}", Query("power")) for n in range(50)}
        assert len(moments) == 50
        assert 0.9 <= min(moments) < 0.95
        assert 1.05 < max(moments) <= 1.1
        assert spread("GPU-0", Query("power")) == spread("GPU-0", Query("power"))
        assert spread("GPU-0", Query("power")) != spread("GPU-0", Query("energy"))


class TestCounter:
    def test_it_is_published_as_read_and_nobody_knows_where_it_began(self) -> None:
        page = folded(Page(), batch(energy=9_876_543_211), metrics=[ENERGY])
        assert page.readings["hw.energy"].points == (Point(9_876_543.211, (), None),)

    def test_going_up_or_standing_still_it_goes_on(self) -> None:
        page = folded(
            Page(), batch(1.0, energy=5000), batch(2.0, energy=5000), batch(3.0, energy=7000),
            metrics=[ENERGY],
        )  # fmt: skip
        assert page.readings["hw.energy"].points == (Point(7.0, (), None),)

    def test_going_back_it_begins_anew_at_that_sweep(self) -> None:
        page = folded(Page(), batch(1.0, energy=5000), batch(2.0, energy=3000), metrics=[ENERGY])
        assert page.readings["hw.energy"].points == (Point(3.0, (), 2_000_000_000),)
        page = folded(page, batch(3.0, energy=4000), metrics=[ENERGY])
        assert page.readings["hw.energy"].points == (Point(4.0, (), 2_000_000_000),)
        page = folded(page, batch(4.0, energy=1000), metrics=[ENERGY])
        assert page.readings["hw.energy"].points == (Point(1.0, (), 4_000_000_000),)

    def test_each_series_has_a_start_of_its_own(self) -> None:
        page = folded(
            Page(),
            batch(1.0, **{"in": 5, "out": 7}),
            batch(2.0, **{"in": 6, "out": 3}),
            metrics=[REPLAYS],
        )
        starts = [point.start_ns for point in page.readings[REPLAYS.name].points]
        assert starts == [None, 2_000_000_000]

    def test_a_gauge_that_falls_has_no_start(self) -> None:
        page = folded(Page(), batch(1.0, power=5000), batch(2.0, power=3000))
        assert page.readings["hw.power"].points == (Point(3.0, (), None),)

    def test_a_value_that_cannot_be_true_does_not_reset_it(self) -> None:
        page = folded(
            Page(),
            batch(1.0, energy=5000),
            batch(2.0, energy=-1),
            batch(3.0, energy=2**64 - 1),
            batch(4.0, energy=6000),
            metrics=[ENERGY],
        )
        assert page.readings["hw.energy"].points == (Point(6.0, (), None),)

    def test_a_reset_while_the_gpu_was_away_is_seen_when_it_is_back(self) -> None:
        page = folded(Page(), batch(1.0, energy=5000), metrics=[ENERGY])
        page = renewed(emptied(page, GPU, [ENERGY], Missing(Reason.LOST, "gone")))
        page = folded(page, batch(9.0, energy=100), metrics=[ENERGY])
        assert page.readings["hw.energy"].points == (Point(0.1, (), 9_000_000_000),)


class TestEnds:
    def test_an_emptied_page_has_a_gap_for_each_metric_and_no_reading(self) -> None:
        page = folded(Page(), batch(power=5, energy=7, ring=ring(until_s=9.0)), metrics=CATALOG[:1])
        page = folded(page, batch(power=5, energy=7), metrics=[POWER, ENERGY, PEAK])
        why = Missing(Reason.LOST, "the GPU is lost")
        page = emptied(page, GPU, [POWER, ENERGY], why)
        assert page.readings == {}
        assert page.windows == {}
        assert set(page.gaps) == {"hw.power", "hw.energy"}
        assert {gap.missing for several in page.gaps.values() for gap in several} == {why}
        assert {gap.device for several in page.gaps.values() for gap in several} == {GPU.uuid}

    def test_emptying_keeps_what_was_learnt_and_counted(self) -> None:
        page = folded(Page(), batch(energy=5000, power=Answer(3)), metrics=[POWER, ENERGY])
        after = emptied(page, GPU, [POWER], Missing(Reason.LOST, ""))
        assert (after.served, after.refused) == (page.served, page.refused)
        assert after.counts == page.counts

    def test_a_new_enumeration_probes_anew_and_reads_static_metrics_again(self) -> None:
        page = folded(
            Page(), batch(power=5, limit=7, energy=Answer(3)), metrics=[POWER, LIMIT, ENERGY]
        )
        after = renewed(page)
        assert (after.served, after.refused) == (frozenset(), {})
        assert set(after.readings) == {"hw.power"}
        assert after.counts == page.counts

    @pytest.mark.parametrize(
        ("codes", "lost"),
        [
            ([Code.GPU_IS_LOST], True),
            ([Code.RESET_REQUIRED], True),
            ([Code.GPU_IS_LOST, Code.NOT_SUPPORTED], True),
            ([Code.UNKNOWN, Code.UNKNOWN, Code.NOT_SUPPORTED], True),
            ([Code.GPU_IS_LOST, Code.SUCCESS], False),
            ([Code.UNKNOWN, Code.UNKNOWN, Code.SUCCESS], False),
            ([Code.UNKNOWN], False),
            ([Code.NOT_SUPPORTED, Code.NO_PERMISSION], False),
            ([Code.TIMEOUT], False),
            ([], False),
        ],
    )
    def test_a_gpu_is_lost_when_it_says_so_and_answers_nothing(
        self, *, codes: list[int], lost: bool
    ) -> None:
        heard = {Query(f"f{place}"): Answer(code) for place, code in enumerate(codes)}
        assert is_lost(Batch(GPU, 0, 0.0, heard)) == lost


FULL = tuple(metric for metric in CATALOG if metric.profile <= Profile.FULL)
ASKED = sorted({query for metric in FULL for query in metric.read.queries}, key=str)
SAID = st.builds(
    Answer,
    st.sampled_from([0, 0, 0, 0, 2, 3, 4, 6, 10, 13, 15, 21, 25, 999]),
    st.sampled_from([0, 1, 57, 61, 2**32 - 1, 2**64 - 1, None, -8, 99_999])
    | st.builds(lambda used: {"total": 80, "used": used, "gpu": used}, st.integers(0, 90))
    | st.builds(
        lambda tick: [[20_000 * tick, 600_000], [20_000 * tick + 1, 5]], st.integers(1, 99)
    ),
)


def recorded(said: list[Answer], device_place: int) -> list[tuple[Batch, tuple[Metric, ...]]]:
    """Make a recording of sweeps out of answers, each to a different part of the catalog."""
    device = [gpu(), instance(gpu())][device_place]
    metrics = applicable(FULL, device)
    recording = []
    for second in range(1, 6):
        heard = {query: said[(place * second) % len(said)] for place, query in enumerate(ASKED)}
        due = metrics[second % 3 :: 1 + second % 2]
        recording.append((Batch(device, second * 10**9, float(second), heard), due))
    return recording


@settings(max_examples=60)
@given(said=st.lists(SAID, min_size=1, max_size=30), device_place=st.integers(0, 1))
def test_who_replays_the_same_answers_gets_the_same_pages(
    said: list[Answer], device_place: int
) -> None:
    pages = []
    for _ in range(2):
        page = Page()
        for one, due in recorded(said, device_place):
            page = fold(page, one, due, WINDOW_S)
        pages.append(page)
    assert pages[0] == pages[1]


@settings(max_examples=60)
@given(said=st.lists(SAID, min_size=1, max_size=30), device_place=st.integers(0, 1))
def test_a_counter_never_falls_without_a_new_start(said: list[Answer], device_place: int) -> None:
    page = Page()
    before: dict[object, Point] = {}
    for one, due in recorded(said, device_place):
        page = fold(page, one, due, WINDOW_S)
        counters = [r for r in page.readings.values() if r.metric.kind is Kind.COUNTER]
        for reading in counters:
            for point in reading.points:
                key = (reading.metric.name, point.attributes)
                if key in before and point.value < before[key].value:
                    assert point.start_ns == one.time_ns
                    assert point.start_ns != before[key].start_ns
                before[key] = point
