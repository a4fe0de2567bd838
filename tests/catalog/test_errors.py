"""Memory errors: by location, by what was done about them, and where they are not counted."""

import pytest

from otel_gpu.catalog.errors import BANK_STATES, BANKS, RETIRED, SRAM
from otel_gpu.model import Device, Query, Reason
from tests.catalog.world import BLACKWELL, HOPPER, RECORDS, VOLTA, WORLD, World, lacking, told

COUNTER = "nvmlDeviceGetMemoryErrorCounter"
NAMES = ("nvidia.gpu.ecc.errors", "nvidia.gpu.ecc.lifetime_errors")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("device", "places"), [(HOPPER, 2), (BLACKWELL, 2), (VOLTA, 8)])
def test_newer_gpus_are_asked_for_the_two_locations_that_they_tell_of(
    name: str, device: Device, places: int
) -> None:
    asked = RECORDS[name].read.wanted(device, lambda _: False)
    assert len(asked) == 2 * places
    assert {query.call for query in asked} == {COUNTER}


@pytest.mark.parametrize("name", NAMES)
def test_a_location_that_is_refused_harms_no_other(name: str) -> None:
    world = {query: value for query, value in WORLD.items() if query.args[2:] != (7,)}
    found = told(name, world)
    assert {dict(attributes)["nvidia.gpu.memory.location"] for attributes in found} == {"dram"}
    assert len(lacking(name, world)) == 2


@pytest.mark.parametrize("name", ["hw.errors", *NAMES])
def test_where_ecc_is_off_there_is_a_gap_and_no_0(name: str) -> None:
    assert told(name, {}) == {}
    assert {gap.reason for gap in lacking(name, {})} == {Reason.UNSUPPORTED}


@pytest.mark.parametrize("missing", BANK_STATES)
def test_a_histogram_with_a_hole_in_it_is_a_gap(missing: str) -> None:
    world: World = {BANKS: {state: 1 for state in BANK_STATES if state != missing}}
    name = "nvidia.gpu.row_remap.bank.status"
    assert told(name, world) == {}
    assert [gap.reason for gap in lacking(name, world)] == [Reason.INVALID]


def test_the_threshold_is_told_even_where_the_sources_are_not() -> None:
    world: World = {SRAM: {"bThresholdExceeded": 0}}
    assert told("nvidia.gpu.ecc.sram.threshold_exceeded", world) == {(): 0}
    assert told("nvidia.gpu.ecc.sram.errors", world) == {}


def test_pages_are_counted_by_cause_and_none_is_0() -> None:
    name = "nvidia.gpu.page_retirement.pages"
    assert [
        *told(name, dict(zip(RETIRED.values(), ([], [4096]), strict=True)), VOLTA).values()
    ] == [
        0,
        1,
    ]
    for value in (None, 5, {"a": 1}):
        assert told(name, dict.fromkeys(RETIRED.values(), value), VOLTA) == {}


def test_a_flag_is_0_or_1_and_nothing_else() -> None:
    repair = Query("nvmlDeviceGetRepairStatus")
    assert [*told("nvidia.gpu.memory.repair.pending", {repair: [1, 2]}).values()] == [1]
    assert [
        gap.reason for gap in lacking("nvidia.gpu.memory.repair.pending", {repair: [1, 2]})
    ] == [Reason.INVALID]
