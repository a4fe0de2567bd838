"""Peaks and lows over a trailing window of the driver's ring buffer, which overlaps itself."""

import math
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.ledger import Page, fold
from otel_gpu.model import (
    Code,
    Metric,
    Query,
    Reason,
)
from otel_gpu.sweep import questions
from otel_gpu.trails import Trail, samples, slid
from tests.paging import (
    GPU,
    LOW,
    PEAK,
    WINDOW_S,
    batch,
    folded,
    reasons,
    refused,
    ring,
    values,
)


class TestWindow:
    """A ring holds 2.36 s, and is asked for each second; so most of it was had before."""

    def swept(self, seconds: int, metrics: Sequence[Metric] = (PEAK, LOW)) -> Page:
        rings = [batch(float(s), ring=ring(until_s=100.0 + s)) for s in range(seconds)]
        return folded(Page(), *rings, metrics=metrics)

    def test_overlapping_rings_are_put_together_and_nothing_counts_twice(self) -> None:
        page = self.swept(30)
        held = page.windows[Query("ring")].samples
        assert len(held) == WINDOW_S / 0.02
        assert all(later[0] - earlier[0] == 20_000 for earlier, later in pairwise(held))

    def test_peak_and_low_are_those_of_the_window_in_watts(self) -> None:
        page = self.swept(30)
        newest = 129 * 50
        assert values(page, PEAK.name) == [(600_000 + newest) / 1000]
        assert values(page, LOW.name) == [(600_000 + newest - 749) / 1000]

    def test_one_ring_serves_peak_and_low_with_one_question(self) -> None:
        assert questions([PEAK, LOW], GPU, Page(), 0.0) == (Query("ring"),)

    def test_a_spike_between_two_sweeps_is_seen_until_it_leaves_the_window(self) -> None:
        spike = [[100_000_000 + 10_000, 738_011]]
        page = folded(Page(), batch(0.0, ring=ring(until_s=100.0)), metrics=[PEAK])
        for second in range(1, 40):
            new = ring(until_s=100.0 + second)
            page = folded(
                page, batch(float(second), ring=spike * (second < 3) + new), metrics=[PEAK]
            )
            covered = second >= 12  # 2.36 s at first, and 1 s more with each sweep
            seen = values(page, PEAK.name) == [738.011]
            assert seen == (covered and second <= 15), second

    def test_before_nine_tenths_are_covered_there_is_a_gap_and_no_number(self) -> None:
        page = self.swept(11)  # 2.38 s and 10 s
        assert values(page, PEAK.name) == []
        assert reasons(page, PEAK.name) == [Reason.COVERAGE]
        assert page.gaps[PEAK.name][0].missing.detail == "ring: samples cover 83% of the last 15 s"
        assert values(self.swept(13), PEAK.name) != []

    def test_sweeps_that_are_too_far_apart_never_cover_the_window(self) -> None:
        rings = [batch(5.0 * s, ring=ring(until_s=100.0 + 5 * s)) for s in range(20)]
        page = folded(Page(), *rings, metrics=[PEAK])
        assert reasons(page, PEAK.name) == [Reason.COVERAGE]

    def test_a_shorter_window_is_covered_sooner(self) -> None:
        page = fold(Page(), batch(ring=ring(until_s=100.0)), [PEAK], 2.5)
        assert values(page, PEAK.name) == [605.0]

    def test_a_ring_that_gains_nothing_lets_the_window_run_out(self) -> None:
        page, old = self.swept(30), ring(until_s=129.0)
        assert values(page, PEAK.name) != []
        for second in range(30, 32):
            page = folded(page, batch(float(second), ring=old), metrics=[PEAK])
        assert reasons(page, PEAK.name) == [Reason.COVERAGE]

    def test_a_driver_that_has_nothing_new_lets_it_run_out_too(self) -> None:
        none = [refused("ring", code=Code.NOT_FOUND, at_s=29.0 + s) for s in range(1, 17)]
        page = folded(self.swept(30), *none, metrics=[PEAK])
        assert page.windows[Query("ring")].samples == ()
        assert reasons(page, PEAK.name) == [Reason.COVERAGE]

    def test_a_clock_that_was_set_back_begins_a_new_window(self) -> None:
        page = folded(self.swept(30), batch(30.0, ring=ring(until_s=50.0)), metrics=[PEAK])
        assert reasons(page, PEAK.name) == [Reason.COVERAGE]
        later = [batch(30.0 + s, ring=ring(until_s=50.0 + s)) for s in range(1, 20)]
        assert values(folded(page, *later, metrics=[PEAK]), PEAK.name) == [603.45]

    def test_a_clock_that_was_set_forward_begins_a_new_window(self) -> None:
        page = folded(self.swept(30), batch(30.0, ring=ring(until_s=5000.0)), metrics=[PEAK])
        assert len(page.windows[Query("ring")].samples) == 119

    def test_what_is_no_sample_is_left_out_of_a_ring(self) -> None:
        given: list[object] = [[3, 7], [2, 2**32 - 1], [1, 5], [4, math.nan], [5], None, ["6", 1]]
        assert samples(given) == [(1, 5), (3, 7)]
        assert samples(None) == samples(5) == samples({}) == []

    def test_a_refused_ring_is_a_gap_that_says_so(self) -> None:
        page = folded(Page(), refused("ring"), metrics=[PEAK])
        assert reasons(page, PEAK.name) == [Reason.UNSUPPORTED]

    @given(
        steps=st.lists(st.integers(1, 110), min_size=1, max_size=25),
        window_s=st.sampled_from([1.0, 2.0, 5.0]),
    )
    def test_any_overlap_gives_exactly_the_samples_of_the_window(
        self, steps: list[int], window_s: float
    ) -> None:
        trail, tick = Trail(), 1000
        for step in steps:
            tick += step
            given = [(place * 20_000, place % 7) for place in range(tick - 118, tick + 1)]
            trail = slid(trail, given, tick * 0.02, window_s)
        first = max(1000 + steps[0] - 118, tick - round(window_s * 50) + 1)
        assert trail.samples == tuple(
            (place * 20_000, place % 7) for place in range(first, tick + 1)
        )
