"""How many series the standard profile has, with every question answered: what storing it costs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from otel_gpu.catalog import CATALOG, FAMILIES
from otel_gpu.catalog.census import select
from otel_gpu.instruments import Instruments
from otel_gpu.ledger import Batch, Page, fold
from otel_gpu.model import Account, Answer, Code, Device, Kind, Profile, Snapshot, System
from otel_gpu.sweep import applicable
from tests.catalog.supplies import POD, SUPPLIES
from tests.catalog.world import HOPPER, NOW_NS, WORLD
from tests.machine import instance

STANDARD = select(CATALOG, Profile.STANDARD)
H200 = replace(HOPPER, fans=0, encoders=0, c2c=False)
GPUS = tuple(replace(H200, uuid=f"GPU-{n}", index=n, minor=n) for n in range(8))
MIG = tuple(
    device
    for gpu in GPUS
    for device in (gpu, *(replace(instance(gpu, n), uuid=f"MIG-{gpu.index}-{n}") for n in range(7)))
)


WELL = SUPPLIES | {"otel_gpu.attribution.held": lambda _: ()}  # sources that can be read


def accounts(devices: Sequence[Device]) -> tuple[Account, ...]:
    return tuple(Account(device.uuid, POD, "exclusive", NOW_NS, 1.0) for device in devices)


def page(device: Device) -> Page:
    """Read a device that answers everything but what ended before Ampere."""
    metrics = applicable(STANDARD, device)
    heard = {
        query: Answer(Code.NOT_SUPPORTED) for metric in metrics for query in metric.read.queries
    }
    heard |= {
        query: Answer(0, value) for query, value in WORLD.items() if "Retired" not in query.call
    }
    return fold(Page(), Batch(device, NOW_NS, 100.0, heard), metrics, 15.0)


def series(devices: Sequence[Device], *, owned: bool = False) -> Counter[str]:
    """Count the series of each metric on a node with these devices, with a pod on each or not."""
    pages = [page(device) for device in devices]
    published = Snapshot(
        system=System(driver_version="580.159.04"),
        devices={device.uuid: device for device in devices},
        up={device.uuid: True for device in devices},
        readings=tuple(one for page in pages for one in page.readings.values()),
        gaps=tuple(gap for page in pages for several in page.gaps.values() for gap in several),
        owners={device.uuid: (POD,) for device in devices},
        energy=accounts(devices) if owned else (),
        held=accounts(devices) if owned else (),
    )
    instruments = Instruments(
        STANDARD, lambda: published, every={}, supplies=WELL, clock=lambda: 100.0
    )
    return Counter(
        {
            metric.name: len(instruments.observe(metric))
            for metric in STANDARD
            if metric.kind is not Kind.HISTOGRAM
        }
    )


def by_family(counts: Counter[str]) -> dict[str, int]:
    return {
        family: sum(counts[metric.name] for metric in metrics)
        for family, metrics in FAMILIES.items()
    }


def said(counts: Counter[str]) -> str:
    return f"{counts.total()}: {by_family(counts)}"


def test_each_gpu_has_at_most_85() -> None:
    each = series(GPUS[:2]) - series(GPUS[:1])
    assert each.total() <= 85, said(each)


def test_a_node_of_8_has_at_most_700() -> None:
    node = series(GPUS)
    assert node.total() <= 700, said(node)


def test_a_node_of_8_with_7_instances_each_has_at_most_1800() -> None:
    node = series(MIG)
    assert node.total() <= 1800, said(node)


def test_an_owner_adds_two_to_each_gpu_that_it_holds() -> None:
    more = series(GPUS, owned=True) - series(GPUS)
    assert more == {"nvidia.gpu.workload.energy": 8, "nvidia.gpu.workload.time": 8}


def test_every_gpu_adds_the_same() -> None:
    one, two, eight = (series(GPUS[:count]).total() for count in (1, 2, 8))
    assert eight - one == 7 * (two - one)


def test_what_storing_it_costs_does_not_creep_up() -> None:
    """5 % more is said in the changelog, and here."""
    counted = [series(devices).total() for devices in (GPUS[:1], GPUS, MIG)]
    assert counted == [pytest.approx(one, rel=0.05) for one in (105, 700, 1764)]
