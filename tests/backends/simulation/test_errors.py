from __future__ import annotations

import pytest

from otel_gpu.backends.simulation.boxes import BOXES
from otel_gpu.catalog.errors import BANKS, METRICS, SRAM
from otel_gpu.catalog.reading import FIELD
from otel_gpu.model import Answer, Code, Query
from tests.backends.box import one, opened, simulated, sweep, value

EVERY_BOX = pytest.mark.parametrize("box", BOXES)
REMAPPING = [Query("nvmlDeviceGetRemappedRows"), *(Query(FIELD, (n, 0)) for n in range(142, 146))]
RETIRED = [Query("nvmlDeviceGetRetiredPages", (cause,)) for cause in (0, 1)]
UNREPAIRABLE = Query("nvmlDeviceGetUnrepairableMemoryFlag_v1")
REPAIR = Query("nvmlDeviceGetRepairStatus")


def located(kind: int, counter: int, place: int) -> Query:
    return Query("nvmlDeviceGetMemoryErrorCounter", (kind, counter, place))


@EVERY_BOX
def test_no_board_has_an_error_and_no_memory_bank_has_used_a_spare_row(box: str) -> None:
    backend = simulated(box)
    [device, *_] = backend.open().devices
    for metric, points, _ in sweep(backend, device, METRICS):
        sound = [point.value for point in points if ("max" not in str(point.attributes))]
        assert set(sound) <= {0}, metric.name


def test_errors_are_located_in_dram_and_sram_and_nowhere_else() -> None:
    backend = opened("h200x8")
    codes = [one(backend, located(1, 0, place)).code for place in range(9)]
    assert [place for place, code in enumerate(codes) if code == 0] == [2, 7]
    assert codes[8] == Code.INVALID_ARGUMENT
    assert {codes[place] for place in (0, 1, 3, 4, 5, 6)} == {Code.NOT_SUPPORTED}
    assert one(backend, located(2, 0, 2)).code == Code.INVALID_ARGUMENT
    assert one(backend, located(0, 2, 2)).code == Code.INVALID_ARGUMENT


def test_totals_are_of_two_kinds_and_two_spans() -> None:
    backend = opened("h200x8")
    for args in ((0, 0), (0, 1), (1, 0), (1, 1)):
        assert value(backend, Query("nvmlDeviceGetTotalEccErrors", args)) == 0
    for nonsense in ((0,), (0, 2), (2, 0), ()):
        query = Query("nvmlDeviceGetTotalEccErrors", nonsense)
        assert one(backend, query) == Answer(Code.INVALID_ARGUMENT)


def test_a_board_whose_ecc_is_off_counts_nothing() -> None:
    backend = opened("rtx4090")
    asked = [Query(FIELD, (3, 0)), Query(FIELD, (4, 0)), located(0, 0, 2), SRAM]
    asked.append(Query("nvmlDeviceGetTotalEccErrors", (0, 0)))
    assert [one(backend, query).code for query in asked] == [Code.NOT_SUPPORTED] * 5


def test_the_sram_status_has_the_members_of_the_drivers_struct() -> None:
    status = value(opened("b200x8"), SRAM)
    assert len(status) == 13
    assert {"aggregateUncBucketL2", "volatileUncSecDed", "bThresholdExceeded"} <= status.keys()
    assert {count for name, count in status.items() if name != "version"} == {0}


@pytest.mark.parametrize(
    ("box", "banks"), [("h200x8", 3072), ("b200x8", 4096), ("l4", 96), ("t4", None)]
)
def test_boards_since_ampere_remap_rows_and_older_ones_retire_pages(
    box: str, banks: int | None
) -> None:
    backend = opened(box)
    remaps = banks is not None
    assert {one(backend, query).ok for query in REMAPPING} == {remaps}
    assert {one(backend, query).ok for query in RETIRED} == {not remaps}
    assert one(backend, Query("nvmlDeviceGetRetiredPagesPendingStatus")).ok == (not remaps)
    if remaps:
        spare = {"max": banks, "high": 0, "partial": 0, "low": 0, "none": 0}
        assert value(backend, BANKS) == spare
    else:
        assert [value(backend, query) for query in RETIRED] == [[], []]
        assert one(backend, BANKS).code == Code.NOT_SUPPORTED


def test_pages_are_retired_for_two_causes() -> None:
    query = Query("nvmlDeviceGetRetiredPages", (2,))
    assert one(opened("t4"), query) == Answer(Code.INVALID_ARGUMENT)


def test_a_divided_gpu_tells_no_remapped_rows() -> None:
    backend = opened("a100-mig")
    assert {one(backend, query).code for query in REMAPPING} == {Code.NOT_SUPPORTED}


def test_repair_and_damage_are_told_by_libraries_and_boards_that_know_them() -> None:
    told = {box: (one(opened(box), REPAIR), one(opened(box), UNREPAIRABLE)) for box in BOXES}
    absent, unknown = Answer(Code.NOT_SUPPORTED), Answer(Code.FUNCTION_NOT_FOUND)
    assert told["h200x8"] == told["b200x8"] == (Answer(0, [0, 0]), Answer(0, 0))
    assert told["a100-mig"] == (Answer(0, [0, 0]), absent)
    assert told["l4"] == told["t4"] == (unknown, unknown)
    assert told["rtx4090"] == told["gb10"] == (absent, absent)
