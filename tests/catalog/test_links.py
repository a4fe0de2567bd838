"""What is asked of every NVLink, and what differs from generation to generation."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.catalog.links import MOST, ByGeneration, EachLink
from otel_gpu.catalog.reading import FIELD, call
from otel_gpu.model import Answer, Code, Device, Missing, Point, Query, Reason
from tests.machine import gpu

KIND = (("error.type", "replay"),)


def added(values: Sequence[float]) -> list[Point]:
    return [Point(sum(values), (("links", len(values)),))]


READ = EachLink(number=161, fold=added, attributes=KIND)


def linked(count: int) -> Device:
    return replace(gpu(), nvlinks=count)


def link(number: int) -> Query:
    return Query(FIELD, (161, number))


def answers(*values: int | Answer) -> dict[Query, Answer]:
    """Let each link answer with a value, or with an answer as it is."""
    return {
        link(number): value if isinstance(value, Answer) else Answer(0, value)
        for number, value in enumerate(values)
    }


def never(_query: Query) -> bool:
    return False


class TestEachLink:
    def test_every_link_that_was_counted_is_asked_and_no_other(self) -> None:
        assert READ.wanted(linked(3), never) == (link(0), link(1), link(2))
        assert READ.wanted(linked(0), never) == ()
        assert READ.wanted(linked(99), never) == READ.queries
        assert len(READ.queries) == MOST == 36

    def test_their_values_are_folded(self) -> None:
        assert READ.read(linked(3), answers(3, 5, 7)) == ([Point(15, (*KIND, ("links", 3)))], [])

    def test_a_gpu_without_links_says_so(self) -> None:
        why = Missing(Reason.UNSUPPORTED, "this GPU has no NVLink", KIND)
        assert READ.read(linked(0), answers(3)) == ([], [why])

    @pytest.mark.parametrize(
        "code", [Code.NOT_SUPPORTED, Code.INVALID_ARGUMENT, Code.FUNCTION_NOT_FOUND]
    )
    def test_a_link_that_does_not_have_the_field_is_left_out(self, code: int) -> None:
        points, missing = READ.read(linked(3), answers(3, Answer(code), 7))
        assert points == [Point(10, (*KIND, ("links", 2)))]
        assert missing == []

    @pytest.mark.parametrize(
        ("code", "reason"),
        [
            (Code.TIMEOUT, Reason.TIMEOUT),
            (Code.NO_DATA, Reason.NOT_READY),
            (Code.UNKNOWN, Reason.LOST),
        ],
    )
    def test_a_link_that_does_not_answer_now_makes_the_sum_a_gap(
        self, code: int, reason: Reason
    ) -> None:
        """Without it a counter would fall, which reads as a reset."""
        points, missing = READ.read(linked(3), answers(3, Answer(code), 7))
        assert points == []
        assert [(gap.reason, gap.attributes) for gap in missing] == [(reason, KIND)]
        assert missing[0].detail.startswith(f"{link(1)}: ")

    def test_a_link_that_was_not_asked_makes_it_a_gap_too(self) -> None:
        _, missing = READ.read(linked(3), answers(3, 5))
        assert [gap.reason for gap in missing] == [Reason.NOT_READY]

    @pytest.mark.parametrize("value", [2**32 - 1, 2**64 - 1, None, "5", True])
    def test_a_value_that_is_no_number_makes_it_a_gap(self, value: object) -> None:
        points, missing = READ.read(linked(2), answers(3, Answer(0, value)))
        assert (points, [gap.reason for gap in missing]) == ([], [Reason.INVALID])

    def test_where_every_link_refuses_the_first_says_why(self) -> None:
        refusal = Answer(Code.NOT_SUPPORTED)
        _, missing = READ.read(linked(2), answers(refusal, refusal))
        assert missing == [
            Missing(Reason.UNSUPPORTED, "nvmlDeviceGetFieldValues(161, 0): not supported", KIND)
        ]

    def test_it_says_where_it_comes_from(self) -> None:
        assert READ.source == "field 161 of each link"

    @given(st.lists(st.integers(0, 2**40) | st.sampled_from([*Code]), min_size=1, max_size=18))
    def test_it_is_the_sum_over_all_that_have_it_or_a_gap(self, said: list[int | Code]) -> None:
        given_answers = [Answer(one) if isinstance(one, Code) and one else one for one in said]
        points, missing = READ.read(linked(len(said)), answers(*given_answers))
        assert bool(points) != bool(missing)
        for point in points:
            assert point.value == sum(one for one in said if not isinstance(one, Code))


class TestByGeneration:
    READ = ByGeneration(lambda device: device.nvlink_version >= 7, call("new"), call("old"))
    OLD, NEW = gpu(), replace(gpu(), nvlink_version=7)

    def test_each_is_asked_in_its_own_way(self) -> None:
        assert self.READ.wanted(self.OLD, never) == (Query("old"),)
        assert self.READ.wanted(self.NEW, never) == (Query("new"),)
        assert self.READ.queries == (Query("new"), Query("old"))

    def test_each_is_read_in_its_own_way(self) -> None:
        both = {Query("new"): Answer(0, 5), Query("old"): Answer(0, 7)}
        assert self.READ.read(self.NEW, both) == ([Point(5)], [])
        assert self.READ.read(self.OLD, both) == ([Point(7)], [])

    def test_what_the_other_generation_has_is_no_gap(self) -> None:
        _, missing = self.READ.read(self.OLD, {Query("old"): Answer(Code.NOT_SUPPORTED)})
        assert [gap.detail for gap in missing] == ["old: not supported"]

    def test_it_names_both_ways(self) -> None:
        assert self.READ.source == "`new`; on older GPUs `old`"
