"""Verdicts: of what is known, whatever is missing; and states of which one holds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.catalog.judging import Judging, Known, one_of, told
from otel_gpu.model import Answer, Code, Missing, Point, Profile, Query, Reason
from tests.machine import gpu

A, B = Query("nvmlDeviceGetA"), Query("nvmlDeviceGetB", (1,))
STATES = {0: "good", 1: "bad"}
LOST = (Point(9),)


def known_only(known: Known) -> list[Point]:
    return [Point(len(known), tuple((str(query), value) for query, value in known.items()))]


READ = Judging(asked=(A,), seldom=(B,), function=known_only, lost=LOST)


def test_it_may_ask_all_its_questions_and_says_which() -> None:
    assert READ.queries == (A, B)
    assert READ.wanted(gpu(), lambda _: True) == (A, B)
    assert READ.source == "`nvmlDeviceGetA`, `nvmlDeviceGetB(1)`"
    assert READ.at(Profile.CORE) == READ


@pytest.mark.parametrize(
    ("answers", "known"),
    [
        ({A: Answer(0, 5), B: Answer(0, 7)}, {"nvmlDeviceGetA": 5, "nvmlDeviceGetB(1)": 7}),
        ({A: Answer(0, 5), B: Answer(Code.NOT_SUPPORTED, 7)}, {"nvmlDeviceGetA": 5}),
        ({A: Answer(0, 0)}, {"nvmlDeviceGetA": 0}),
    ],
)
def test_it_judges_what_was_answered_and_leaves_no_gap(
    answers: dict[Query, Answer], known: dict[str, Any]
) -> None:
    ((_, attributes, _),), missing = READ.read(gpu(), answers)
    assert dict(attributes) == known
    assert missing == []


@pytest.mark.parametrize(
    ("answers", "reason", "detail"),
    [
        ({}, Reason.NOT_READY, "nvmlDeviceGetA: no data"),
        (
            {A: Answer(Code.NOT_SUPPORTED), B: Answer(Code.NO_PERMISSION)},
            Reason.UNSUPPORTED,
            "nvmlDeviceGetA: not supported",
        ),
        ({B: Answer(Code.TIMEOUT)}, Reason.NOT_READY, "nvmlDeviceGetA: no data"),
    ],
)
def test_on_nothing_there_is_no_verdict(
    answers: dict[Query, Answer], reason: Reason, detail: str
) -> None:
    assert READ.read(gpu(), answers) == ([], [Missing(reason, detail)])


@pytest.mark.parametrize("code", [Code.GPU_IS_LOST, Code.RESET_REQUIRED])
@pytest.mark.parametrize("query", [A, B])
def test_one_answer_that_the_gpu_is_lost_is_enough(query: Query, code: int) -> None:
    answers = {A: Answer(0, 5), B: Answer(0, 7), query: Answer(code)}
    assert READ.read(gpu(), answers) == (list(LOST), [])


def test_a_refusal_of_another_kind_is_no_loss() -> None:
    for code in (Code.UNKNOWN, Code.TIMEOUT, Code.NOT_READY, Code.INVALID_ARGUMENT):
        points, _ = READ.read(gpu(), {A: Answer(code)})
        assert points != list(LOST)


@pytest.mark.parametrize(
    ("value", "path", "number"),
    [
        (5, (), 5),
        ({"none": 3}, ("none",), 3),
        ([0, 1], (1,), 1),
        (None, (), 0),
        ({}, ("none",), 0),
        ("5", (), 0),
        (2**32 - 1, (), 0),
    ],
)
def test_what_is_no_number_tells_nothing(
    value: Any, path: tuple[str | int, ...], number: int
) -> None:
    assert told({A: value}, A, *path) == number


def test_what_was_not_answered_tells_nothing() -> None:
    assert told({}, A) == told({}, A, "none") == 0


def test_the_state_that_holds_is_1_and_the_others_are_there_as_0() -> None:
    assert one_of("k", STATES, 1) == [Point(0, (("k", "good"),)), Point(1, (("k", "bad"),))]


def test_a_state_of_tomorrow_is_a_state_of_its_own_by_its_number() -> None:
    assert one_of("k", STATES, 7) == [
        Point(0, (("k", "good"),)),
        Point(0, (("k", "bad"),)),
        Point(1, (("k", "7"),)),
    ]


@given(st.integers() | st.text())
def test_exactly_one_state_is_1(state: int | str) -> None:
    points = one_of("k", STATES, state)
    assert sum(point.value for point in points) == 1
    assert len({point.attributes for point in points}) == len(points)
