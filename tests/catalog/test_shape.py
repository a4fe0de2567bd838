"""What is taken out of an answer is what it must be, or the answer is said to be misshapen."""

from typing import Any

import pytest

from otel_gpu.catalog.reading import asking
from otel_gpu.catalog.shape import Misshapen, entries, structs, whole
from otel_gpu.model import Answer, Missing, Point, Query, Reason
from tests.machine import gpu

A = Query("nvmlDeviceGetA", (3,))


@pytest.mark.parametrize(
    ("value", "path", "found"),
    [(7, (), 7), ({"a": [3, 5]}, ("a", 1), 5), ([-8], (0,), -8), (2**63 - 1, (), 2**63 - 1)],
)
def test_a_whole_number_is_found_at_its_place(
    value: Any, path: tuple[str | int, ...], found: int
) -> None:
    assert whole({A: value}, A, *path) == found


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (None, ()),
        (True, ()),
        (7.0, ()),
        ("7", ()),
        (2**32 - 1, ()),
        (2**64 - 1, ()),
        ({"a": 7}, ()),
        ({"a": 7}, ("b",)),
        ([7], (1,)),
        (7, (0,)),
    ],
)
def test_what_is_no_whole_number_names_its_question(
    value: Any, path: tuple[str | int, ...]
) -> None:
    with pytest.raises(Misshapen, match=r"nvmlDeviceGetA\(3\)") as error:
        whole({A: value}, A, *path)
    assert error.value.query == A


def test_a_list_is_a_list_and_nothing_else() -> None:
    assert entries({A: [1, None]}, A) == [1, None]
    for value in (None, "ab", {"a": 1}, 5):
        with pytest.raises(Misshapen):
            entries({A: value}, A)


def test_a_list_of_structs_has_the_members_that_are_needed() -> None:
    found = [{"pid": 1, "x": None}, {"pid": 2}]
    assert structs({A: found}, A, "pid") == found
    assert structs({A: []}, A, "pid") == []
    for value in ([{"x": 1}], [None], [{"pid": None}], [{"pid": 1}, {"pid": "2"}], {"pid": 1}):
        with pytest.raises(Misshapen):
            structs({A: value}, A, "pid")


def test_over_a_misshapen_answer_a_reading_has_a_gap_that_shows_it() -> None:
    read = asking((A,), lambda _device, values: [Point(whole(values, A, "total"))])
    assert read.read(gpu(), {A: Answer(0, {"total": 5})}) == ([Point(5)], [])
    assert read.read(gpu(), {A: Answer(0, {"used": 5})}) == (
        [],
        [Missing(Reason.INVALID, "nvmlDeviceGetA(3): {'used': 5}")],
    )
