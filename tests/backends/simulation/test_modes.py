from __future__ import annotations

import pytest

from otel_gpu.backends.simulation.boxes import BOXES
from otel_gpu.catalog.health import (
    COMPUTE_MODE,
    ECC_MODE,
    LICENCES,
    MIG_MODE,
    RECOVERY,
    STATUS,
)
from otel_gpu.model import Answer, Code, Query
from tests.backends.box import one, opened, simulated, sweep, value

EVERY_BOX = pytest.mark.parametrize("box", BOXES)
PERSISTENCE = Query("nvmlDeviceGetPersistenceMode")


UNJUDGED = ("t4", "gb10")  # they answer none of the questions that a verdict is made of


@EVERY_BOX
def test_every_gpu_is_well(box: str) -> None:
    backend = simulated(box)
    for device in backend.open().devices:
        if not device.is_instance:
            [(_, points, gaps)] = sweep(backend, device, [STATUS])
            if box in UNJUDGED:
                assert gaps
                assert not points
            else:
                assert not gaps
                assert [point.value for point in points] == [1, 0, 0, 0]


@EVERY_BOX
def test_no_gpu_is_a_virtual_one_and_anyone_may_compute(box: str) -> None:
    backend = opened(box)
    licences = value(backend, LICENCES)
    assert licences["isGridLicenseSupported"] == licences["licensableFeaturesCount"] == 0
    assert len(licences["gridLicensableFeatures"]) == 3
    assert value(backend, COMPUTE_MODE) == 0


def test_modes_are_told_as_they_are_and_as_they_will_be() -> None:
    h200, a100, geforce = opened("h200x8"), opened("a100-mig"), opened("rtx4090")
    assert (value(h200, ECC_MODE), value(h200, MIG_MODE)) == ([1, 1], [0, 0])
    assert (value(a100, ECC_MODE), value(a100, MIG_MODE)) == ([1, 1], [1, 1])
    assert value(geforce, ECC_MODE) == [0, 0]
    assert value(h200, PERSISTENCE) == 1
    assert value(geforce, PERSISTENCE) == 0


@pytest.mark.parametrize("box", ["l4", "t4", "rtx4090", "gb10"])
def test_boards_that_cannot_be_divided_have_no_such_mode(box: str) -> None:
    assert one(opened(box), MIG_MODE) == Answer(Code.NOT_SUPPORTED)


def test_the_driver_asks_for_nothing_where_it_knows_what_to_ask() -> None:
    assert value(opened("h200x8"), RECOVERY) == 0
    assert one(opened("t4"), RECOVERY) == Answer(Code.INVALID_ARGUMENT)
    assert one(opened("gb10"), RECOVERY) == Answer(Code.NOT_SUPPORTED)
    assert one(opened("gb10"), ECC_MODE) == Answer(Code.NOT_SUPPORTED)
