"""What a sweep asks, and what it shows of what was remembered."""

import math
from dataclasses import replace

import pytest

from otel_gpu.catalog.reading import call, either, supplied
from otel_gpu.ledger import Batch, Page, Refusal, fold
from otel_gpu.model import Answer, Code, Kind, Metric, Query, Reason, Tier
from otel_gpu.sweep import applicable, intervals, oldest, questions, shown, since
from otel_gpu.trails import Trail
from tests.machine import gpu, instance

GPU, SLICE = gpu(), instance(gpu())
POWER = Metric(
    name="hw.power",
    kind=Kind.GAUGE,
    unit="W",
    brief="Power.",
    read=either(call("instant"), call("usage")),
    tier=Tier.FAST,
)
MEMORY = replace(POWER, name="hw.gpu.memory.usage", read=call("memory"), on_instance=True)
OWN = replace(POWER, name="otel_gpu.sweep.age", read=supplied("the sampler"), on_instance=True)
STATIC = replace(MEMORY, name="hw.gpu.memory.limit", tier=Tier.STATIC)

SECONDS = {Tier.FAST: 1.0, Tier.DEFAULT: 5.0, Tier.SLOW: 60.0}


class TestApplicable:
    def test_a_gpu_is_asked_for_everything_but_what_the_agent_counts(self) -> None:
        assert applicable([POWER, MEMORY, OWN], GPU) == (POWER, MEMORY)

    def test_an_instance_is_not_asked_for_what_is_its_gpus(self) -> None:
        assert applicable([POWER, MEMORY, OWN], SLICE) == (MEMORY,)


class TestQuestions:
    def test_a_question_of_two_metrics_is_asked_once(self) -> None:
        asked = questions([MEMORY, POWER, STATIC], GPU, Page(), 0.0)
        assert asked == (Query("memory"), Query("instant"), Query("usage"))

    def test_what_was_refused_for_good_is_not_asked_until_its_time(self) -> None:
        page = Page(refused={Query("instant"): Refusal(Code.NOT_SUPPORTED, 100.0)})
        assert questions([POWER], GPU, page, 99.9) == (Query("usage"),)
        assert questions([POWER], GPU, page, 100.0) == (Query("instant"), Query("usage"))

    def test_a_second_path_is_not_asked_once_the_first_serves(self) -> None:
        page = Page(served=frozenset({Query("instant"), Query("usage")}))
        assert questions([POWER], GPU, page, 0.0) == (Query("instant"),)


class TestSince:
    RING = Query("nvmlDeviceGetSamples", (0, 0))

    def test_a_ring_of_which_nothing_is_held_is_asked_for_all(self) -> None:
        assert since(self.RING, Page()) == self.RING
        assert since(self.RING, Page(windows={self.RING: Trail()})) == self.RING

    def test_a_ring_is_asked_for_what_came_after_the_newest_that_is_held(self) -> None:
        trail = Trail(samples=((1_000_000, 5), (1_020_000, 7)), gained_s=1.0)
        later = since(self.RING, Page(windows={self.RING: trail}))
        assert later == Query("nvmlDeviceGetSamples", (0, 1_020_000))

    def test_any_other_question_stays_as_it_is(self) -> None:
        trail = Trail(samples=((1_000_000, 5),), gained_s=1.0)
        assert since(Query("usage"), Page(windows={self.RING: trail})) == Query("usage")


class TestIntervals:
    def test_a_metric_has_its_tiers_seconds(self) -> None:
        every = intervals([POWER, STATIC], SECONDS, lambda _: None)
        assert every == {"hw.power": 1.0}

    def test_a_configured_period_wins_over_the_tier(self) -> None:
        every = intervals([POWER, STATIC], SECONDS, {"hw.power": 7.0, STATIC.name: 3600.0}.get)
        assert every == {"hw.power": 7.0, "hw.gpu.memory.limit": 3600.0}


class TestOldest:
    @pytest.mark.parametrize(("period", "expected"), [(1.0, 10.0), (5.0, 15.0), (60.0, 180.0)])
    def test_a_reading_lives_three_periods_and_ten_seconds_at_least(
        self, period: float, expected: float
    ) -> None:
        assert oldest(POWER, {"hw.power": period}) == expected

    def test_a_static_reading_does_not_age(self) -> None:
        assert oldest(STATIC, {}) == math.inf


class TestShown:
    EVERY = {"hw.power": 1.0}  # noqa: RUF012 - never changed

    def ledger(self) -> dict[str, Page]:
        heard = {Query("usage"): Answer(Code.SUCCESS, 5)}
        page = fold(Page(), Batch(GPU, 1, 100.0, heard), [POWER, MEMORY], 15.0)
        return {GPU.uuid: page}

    def test_what_is_fresh_is_shown_with_the_gaps_beside_it(self) -> None:
        readings, gaps = shown(self.ledger(), self.EVERY, 110.0)
        assert [reading.metric.name for reading in readings] == ["hw.power"]
        assert [(gap.metric, gap.missing.reason) for gap in gaps] == [
            ("hw.gpu.memory.usage", Reason.NOT_READY)
        ]

    def test_what_has_grown_stale_is_a_gap_and_not_a_reading(self) -> None:
        readings, gaps = shown(self.ledger(), self.EVERY, 110.1)
        assert readings == ()
        assert ("hw.power", Reason.STALE) in [(gap.metric, gap.missing.reason) for gap in gaps]
        (stale,) = (gap for gap in gaps if gap.missing.reason is Reason.STALE)
        assert (stale.device, stale.missing.detail) == (GPU.uuid, "last read 10 s ago")

    def test_an_empty_ledger_shows_nothing(self) -> None:
        assert shown({}, self.EVERY, 0.0) == ((), ())
