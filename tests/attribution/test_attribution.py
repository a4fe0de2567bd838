"""Owners of several sources put together, and the series that joins them with their GPUs."""

from collections.abc import Sequence

from otel_gpu.attribution import Health, Owners, allocation, gathered
from otel_gpu.model import Device, Owner, Point, Snapshot
from tests.machine import gpu

GPUS = [gpu(0), gpu(1)]
POD = Owner((("k8s.pod.name", "train-0"),))
JOB = Owner((("slurm.job.id", 17),))


class Says:
    """A source that knows what it was told, and remembers whom it was asked about."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self.asked: list[str] = []

    def owners(self, devices: Sequence[Device]) -> Owners:
        self.asked += [device.uuid for device in devices]
        return self._owners

    def health(self) -> Health:
        return Health("says", up=True)


def test_every_source_is_asked_about_every_gpu() -> None:
    sources = [Says({}), Says({})]
    assert gathered(sources, GPUS) == {}
    assert [source.asked for source in sources] == [["GPU-0", "GPU-1"]] * 2


def test_owners_of_several_sources_stand_beside_each_other_in_their_order() -> None:
    sources = [Says({"GPU-0": (POD,)}), Says({"GPU-0": (JOB,), "GPU-1": (JOB,)})]
    assert gathered(sources, GPUS) == {"GPU-0": (POD, JOB), "GPU-1": (JOB,)}


def test_an_owner_whom_two_sources_know_is_one_owner() -> None:
    sources = [Says({"GPU-0": (POD,)}), Says({"GPU-0": (POD, JOB)})]
    assert gathered(sources, GPUS) == {"GPU-0": (POD, JOB)}


def test_nobody_owns_anything_without_a_source() -> None:
    assert gathered([], GPUS) == {}


def test_an_allocation_is_a_point_of_1_for_each_owner_and_says_whether_it_is_shared() -> None:
    snapshot = Snapshot(owners={"GPU-0": (POD, JOB), "GPU-1": (JOB,)})
    assert list(allocation(snapshot)) == [
        ("GPU-0", Point(1, (("k8s.pod.name", "train-0"), ("nvidia.gpu.shared", True)))),
        ("GPU-0", Point(1, (("slurm.job.id", 17), ("nvidia.gpu.shared", True)))),
        ("GPU-1", Point(1, (("slurm.job.id", 17), ("nvidia.gpu.shared", False)))),
    ]
