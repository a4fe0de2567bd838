"""What stands on a series: the attributes that its record declares, and never more than 15."""

from functools import cache

import pytest

from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.forms import Supplied
from otel_gpu.instruments import Instruments, Shape
from otel_gpu.ledger import Batch, Page, fold
from otel_gpu.model import (
    Account,
    Answer,
    Code,
    Device,
    Gap,
    Kind,
    Metric,
    Missing,
    Owner,
    Reading,
    Reason,
    Snapshot,
    System,
)
from otel_gpu.sweep import applicable
from tests.catalog.planting import answers, planted, seeds
from tests.catalog.supplies import JOB, POD, SUPPLIES
from tests.catalog.world import BLACKWELL, HOPPER, NOW_NS, SLICE, VOLTA, WORLD

MOST = 15
GPUS = (HOPPER, BLACKWELL, VOLTA)
SHAPES = [
    Shape("minimal", "gpu"),
    Shape("minimal", "node"),
    Shape("full", "gpu"),
    Shape("full", "node"),
]


@cache
def readings(device: Device) -> tuple[Reading, ...]:
    """Read everything that the catalog can read on a device."""
    metrics = applicable(CATALOG, device)
    heard = answers(planted(seeds(CATALOG, device)))  # what was added since the world was written
    heard |= {query: Answer(Code.SUCCESS, value) for query, value in WORLD.items()}
    batch = Batch(device, NOW_NS, 100.0, heard)
    return tuple(fold(Page(), batch, metrics, 15.0).readings.values())


def snapshot(owner: Owner) -> Snapshot:
    """Publish a GPU of each kind and an instance, all of one owner, with every trouble there is."""
    gaps = tuple(
        Gap("hw.power", device.uuid, Missing(reason, "why"))
        for device in (HOPPER, SLICE)
        for reason in Reason
    )
    return Snapshot(
        system=System(driver_version="580.159.04", nvml_version="13", cuda_version="13.0"),
        devices={device.uuid: device for device in (*GPUS, SLICE)},
        up={HOPPER.uuid: True, SLICE.uuid: False},
        readings=tuple(one for device in (*GPUS, SLICE) for one in readings(device)),
        gaps=gaps,
        owners={device.uuid: (owner,) for device in (*GPUS, SLICE)},
        energy=accounts(owner),
        held=accounts(owner),
        hung=(("nvmlDeviceGetPowerUsage", HOPPER.uuid), ("nvmlInit", "")),
    )


def accounts(owner: Owner) -> tuple[Account, ...]:
    """Let the owner have used something of each."""
    return tuple(Account(device.uuid, owner, "exclusive", NOW_NS, 1.5) for device in (*GPUS, SLICE))


@cache
def carried(shape: Shape, owner: Owner) -> dict[str, list[set[str]]]:
    """Give the label names of every series, by metric."""
    published = snapshot(owner)
    instruments = Instruments(
        CATALOG,
        lambda: published,
        every={},
        supplies=SUPPLIES,
        shape=shape,
        clock=lambda: 100.0,
    )
    return {
        metric.name: [set(seen.attributes or {}) for seen in instruments.observe(metric)]
        for metric in CATALOG
        if metric.kind is not Kind.HISTOGRAM
    }


def identity_keys(shape: Shape) -> set[str]:
    """Give what tells a GPU or an instance from every other, written down by hand."""
    keys = {"hw.id", "hw.name", "hw.parent"}
    keys |= {f"nvidia.gpu.mig.{key}" for key in ("profile", "gpu_instance", "compute_instance")}
    full = {"hw.model", "hw.serial_number", "hw.driver_version"}
    return keys | full if shape.identity == "full" else keys


def constant(metric: Metric) -> set[str]:
    return {key for key, _ in metric.constant}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_no_series_has_more_than_15_labels(shape: Shape) -> None:
    for name, series in carried(shape, POD).items():
        for labels in series:
            assert len(labels) <= MOST, f"{name} has {len(labels)}: {sorted(labels)}"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_metric_of_the_gpus_is_there_on_the_gpu_and_on_the_instance(shape: Shape) -> None:
    found = carried(shape, POD)
    for metric in CATALOG:
        if not isinstance(metric.read, Supplied):
            on_slice = any("hw.parent" in labels for labels in found[metric.name])
            assert found[metric.name], f"{metric.name} has no series"
            assert on_slice == metric.on_instance, metric.name


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    "metric",
    [m for m in CATALOG if not isinstance(m.read, Supplied)],
    ids=lambda metric: metric.name,
)
def test_the_points_of_a_reading_carry_what_the_record_declares(
    metric: Metric, shape: Shape
) -> None:
    owner = {key for key, _ in POD.attributes} if metric.owner else set()
    found = carried(shape, POD)[metric.name]
    others = (identity_keys(shape) | owner) - set(metric.attributes)
    assert set().union(*found) - others == set(metric.attributes) | constant(metric)
    assert all(owner <= labels for labels in found)


@pytest.mark.parametrize("name", SUPPLIES)
def test_the_points_that_the_agent_counts_carry_what_the_record_declares(name: str) -> None:
    (metric,) = (metric for metric in CATALOG if metric.name == name)
    declared = set(metric.attributes) - {"hw.id"}  # which comes with a GPU's identity
    shape = Shape()
    found = [labels for owner in (POD, JOB) for labels in carried(shape, owner)[name]]
    assert set().union(*found) - identity_keys(shape) == declared


def test_the_owner_is_never_on_a_lifetime_counter() -> None:
    owner = {key for key, _ in POD.attributes}
    found = carried(Shape(), POD)
    for metric in CATALOG:
        if metric.kind is Kind.COUNTER and not metric.name.startswith("nvidia.gpu.workload."):
            assert not owner & set().union(*found[metric.name]), metric.name


def test_every_count_of_the_agent_that_has_attributes_is_tested_here() -> None:
    counted = {
        metric.name
        for metric in CATALOG
        if isinstance(metric.read, Supplied)
        and metric.attributes
        and metric.kind is not Kind.HISTOGRAM
    }
    assert counted <= SUPPLIES.keys()
