from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.backends.field_ids import field_id

SW_THERM, HW_THERM, HW_POWER_BRAKE = 269, 270, 271
SMOOTHING_ENABLED, SMOOTHING_LAST = 251, 268
SYNC_BALANCING = 272
POWER, SMOOTHING_FLOOR = 186, 275
LOW_POWER_MAX = 200


@pytest.mark.parametrize(
    ("driver", "therm", "smoothing", "balancing"),
    [
        ("535.104.05", None, None, None),
        ("565.57.01", None, None, None),
        ("570.124.06", None, 251, None),
        ("575.51.03", 251, 256, 254),
        ("577.00", 251, 256, 254),
        ("580.65.06", 251, 256, 254),
        ("580.66", None, None, None),
        ("580.76.05", None, None, None),
        ("580.81.99", None, None, None),
        ("580.82.07", 269, 251, 272),
        ("580.159.04", 269, 251, 272),
        ("595.45.04", 269, 251, 272),
        ("615.10", 269, 251, 272),
        ("", None, None, None),
        ("unknown", None, None, None),
    ],
)
def test_a_field_is_asked_by_the_number_that_the_driver_knows(
    driver: str, therm: int | None, smoothing: int | None, balancing: int | None
) -> None:
    assert field_id(SW_THERM, driver) == therm
    assert field_id(SMOOTHING_ENABLED, driver) == smoothing
    assert field_id(SYNC_BALANCING, driver) == balancing


def test_neighbours_stay_neighbours_where_they_were_moved() -> None:
    assert [field_id(one, "575.51") for one in (SW_THERM, HW_THERM, HW_POWER_BRAKE)] == [
        251,
        252,
        253,
    ]
    assert field_id(SMOOTHING_LAST, "575.51") == 273


@pytest.mark.parametrize(
    "driver", ["", "470.256.02", "535.104.05", "575.51", "580.70", "580.159.04"]
)
@pytest.mark.parametrize("current", [POWER, SMOOTHING_FLOOR])
def test_a_field_that_never_moved_is_asked_as_it_is(current: int, driver: str) -> None:
    assert field_id(current, driver) == current


def test_two_fields_were_swapped_for_a_while() -> None:
    drivers = ("550.90", "555.42", "560.35", "565.57", "580.159")
    assert [field_id(LOW_POWER_MAX, driver) for driver in drivers] == [200, 199, 199, 200, 200]


@given(
    fields=st.sets(st.integers(1, 310), min_size=2),
    branch=st.integers(500, 620),
    minor=st.integers(0, 200),
)
def test_no_driver_is_asked_for_two_fields_by_one_number(
    fields: set[int], branch: int, minor: int
) -> None:
    numbers = [field_id(field, f"{branch}.{minor}") for field in fields]
    asked = [number for number in numbers if number is not None]
    assert len(asked) == len(set(asked))
