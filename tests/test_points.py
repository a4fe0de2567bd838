"""Columns are points for whoever looks, and numbers that OTLP cannot carry are told apart."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.model import NODE, Series
from otel_gpu.points import INT64, Observed, Points, group

SERIES = Series({"a": "b"}, NODE, 7)
NUMBERS: st.SearchStrategy[Any] = (
    st.integers(-(2**70), 2**70) | st.floats() | st.booleans() | st.sampled_from([INT64, -INT64])
)


def carried(value: Any) -> bool:
    """Whether OTLP can carry a number, told one by one."""
    if type(value) is int:
        return -INT64 <= value < INT64
    return type(value) is float and math.isfinite(value)


@given(st.lists(NUMBERS, min_size=1, max_size=6))
def test_a_group_is_plain_only_if_each_of_its_values_is(values: list[Any]) -> None:
    found = group(values, [SERIES] * len(values))

    assert found.resource is NODE
    if found.plain:
        assert all(map(carried, values))
    if all(map(carried, values)) and all(abs(value) < 1e18 for value in values):
        assert found.plain


def test_observations_are_made_once_and_know_their_series() -> None:
    observed = Observed([group([1, 2.5], [SERIES, SERIES])])

    assert len(observed) == 2
    assert [(one.value, one.attributes, one.series) for one in observed] == [
        (1, {"a": "b"}, SERIES),
        (2.5, {"a": "b"}, SERIES),
    ]
    assert observed[1] is list(observed)[1]


@pytest.mark.parametrize(
    ("started", "starts", "expected"),
    [(True, None, [7, 7]), (False, None, [0, 0]), (True, [3, 4], [3, 4])],
)
def test_a_start_is_that_of_the_series_unless_the_points_say_another(
    started: bool,  # noqa: FBT001 - pytest gives it by name
    starts: list[int] | None,
    expected: list[int],
) -> None:
    points = Points([1, 2], [SERIES, SERIES], 9, started=started, starts=starts)

    assert [point.start_time_unix_nano for point in points] == expected
    assert [points[index].start_time_unix_nano for index in (0, 1)] == expected
    assert [point.start_time_unix_nano for point in points[1:]] == expected[1:]
