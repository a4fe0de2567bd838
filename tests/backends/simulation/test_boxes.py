from __future__ import annotations

import re
from uuid import UUID

import pytest

from otel_gpu.backends.simulation.boxes import BOXES, SEVEN, Box, instance
from otel_gpu.backends.simulation.figures import MIB, Engines
from otel_gpu.backends.simulation.replies import CALLS, FIELDS
from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.power import averages
from otel_gpu.catalog.reading import FIELD
from otel_gpu.model import Query

EVERY_BOX = pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
SLICES = {"1g.10gb": 1, "2g.20gb": 2, "3g.40gb": 3}


@EVERY_BOX
def test_every_gpu_of_a_box_is_somebody_else(box: Box) -> None:
    devices = [box.device(index) for index in range(64)]
    for key in ("uuid", "index", "minor", "pci_address"):
        assert len({getattr(device, key) for device in devices}) == 64, key
    serials = {device.serial for device in devices}
    assert len(serials) == (64 if box.board.serial else 1)


@EVERY_BOX
def test_identities_have_the_form_that_a_driver_gives_them(box: Box) -> None:
    device = box.device(box.gpus - 1)
    assert UUID(device.uuid.removeprefix("GPU-")).version == 4
    assert re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.0", device.pci_address)
    assert re.fullmatch(r"[0-9]{13}|", device.serial)
    assert re.fullmatch(r"[0-9]{3}\.[0-9.]+", device.driver_version)
    assert box.nvml_version.endswith(device.driver_version)


def test_identities_never_change() -> None:
    first = BOXES["h200x8"].device(0)
    assert first == BOXES["h200x8"].device(0)
    assert first.uuid == "GPU-b749df23-418e-4c58-a25f-5dc6d0f89b9e"


def test_identities_differ_between_boxes() -> None:
    assert len({box.device(0).uuid for box in BOXES.values()}) == len(BOXES)


@EVERY_BOX
def test_the_instances_of_a_gpu_fit_into_it(box: Box) -> None:
    for layout in box.layouts:
        assert sum(SLICES[share.profile] for share in layout) <= 7
        assert len({share.gpu_instance for share in layout}) == len(layout)
        shared = sum(share.memory_total for share in layout)
        assert shared <= box.board.memory_total - box.board.memory_reserved


def test_an_instance_is_its_gpu_but_for_what_makes_it_an_instance() -> None:
    gpu = BOXES["a100-mig"].device(1)
    part = instance(gpu, SEVEN[0])
    assert part.is_instance
    assert part.parent == gpu.uuid
    assert part.uuid.startswith("MIG-")
    assert (part.mig_profile, part.gpu_instance, part.compute_instance) == ("1g.10gb", 7, 0)
    assert (part.minor, part.model, part.serial) == (gpu.minor, gpu.model, gpu.serial)
    assert (part.decoders, part.jpegs, part.ofas, part.nvlinks) == (0, 0, 0, 0)


def test_instances_of_like_layouts_on_two_gpus_are_not_taken_for_one_another() -> None:
    box = BOXES["a100-mig"]
    found = [instance(box.device(index), share).uuid for index in (1, 3) for share in SEVEN]
    assert len(set(found)) == 14


@EVERY_BOX
def test_every_refusal_is_one_of_a_question_that_is_asked(box: Box) -> None:
    questions = {query for metric in CATALOG for query in metric.read.queries}
    functions = {query.call for query in questions}
    for refused in box.board.refuses:
        if isinstance(refused, Query):
            assert refused in questions, refused
        else:
            assert refused in functions, refused


@EVERY_BOX
def test_a_gpu_has_the_links_and_engines_of_its_board(box: Box) -> None:
    device, board = box.device(0), box.board
    assert (device.nvlinks, device.nvlink_version) == (board.nvlink.links, board.nvlink.version)
    assert (device.nvlinks > 0) == (device.nvlink_version > 0)
    found = Engines(device.decoders, device.encoders, device.jpegs, device.ofas)
    assert found == board.engines


def test_the_simulation_models_only_questions_that_are_asked() -> None:
    questions = {query for metric in CATALOG for query in metric.read.queries}
    assert {query.call for query in questions} >= CALLS.keys()
    assert {query.args for query in questions if query.call == FIELD} >= FIELDS.keys()


@EVERY_BOX
def test_power_usage_is_an_average_where_the_header_says_so(box: Box) -> None:
    assert box.board.averages == averages(box.device(0))


@EVERY_BOX
def test_sizes_are_whole_megabytes_or_pages(box: Box) -> None:
    assert box.board.memory_total % MIB == 0
    assert box.board.memory_reserved % (1 << 16) == 0
