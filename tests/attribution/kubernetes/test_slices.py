"""Which GPU a claimed device is, with and without its ResourceSlice."""

from dataclasses import replace
from typing import Any

import pytest

from otel_gpu.attribution.kubernetes.resources import Claimed
from otel_gpu.attribution.kubernetes.slices import resolved, uuids
from tests.machine import gpu, instance

DRIVER = "gpu.nvidia.com"
GPUS = (replace(gpu(0), minor=0), replace(gpu(1), minor=3), instance(gpu(1), 2))
MIG = Claimed(DRIVER, "node-1", "gpu-3-mig-19-0-1")


def described(name: str, attributes: dict[str, Any], *, basic: bool) -> dict[str, Any]:
    device = {"attributes": attributes}
    return {"name": name, "basic": device} if basic else {"name": name, **device}


@pytest.mark.parametrize("basic", [False, True], ids=["v1", "v1beta1"])
@pytest.mark.parametrize("name", ["uuid", "gpu.nvidia.com/uuid"])
def test_a_slice_says_the_uuid_of_each_device(name: str, *, basic: bool) -> None:
    device = described("gpu-3-mig-19-0-1", {name: {"string": "MIG-1-2"}}, basic=basic)
    spec = {"driver": DRIVER, "pool": {"name": "node-1"}, "devices": [device]}
    assert uuids([{"spec": spec}]) == {MIG: "MIG-1-2"}


@pytest.mark.parametrize(
    "strange",
    [
        {},
        {"spec": None},
        {"spec": {"devices": None}},
        {"spec": {"devices": [{"name": "gpu-0"}]}},
        {"spec": {"devices": [{"name": "gpu-0", "attributes": {"uuid": {"int": 3}}}]}},
        {"spec": {"pool": None, "devices": [{"attributes": {"uuid": {"string": ["a"]}}}]}},
    ],
)
def test_a_slice_of_another_form_says_nothing(strange: dict[str, Any]) -> None:
    assert uuids([strange]) == {}


def test_a_device_whose_slice_is_known_is_the_one_of_that_uuid() -> None:
    assert resolved(MIG, GPUS, {MIG: "MIG-1-2"}) == (GPUS[2],)
    assert resolved(MIG, GPUS, {MIG: "MIG-9-9"}) == ()


def test_without_its_slice_a_whole_gpu_is_told_by_its_number_where_that_can_mean_one_only() -> None:
    assert resolved(Claimed(DRIVER, "node-1", "gpu-0"), GPUS, {}) == (GPUS[0],)
    assert resolved(Claimed(DRIVER, "node-1", "gpu-1"), GPUS, {}) == ()
    assert resolved(Claimed(DRIVER, "node-1", "gpu-3"), GPUS, {}) == ()


def test_without_its_slice_an_instance_is_not_guessed() -> None:
    assert resolved(MIG, GPUS, {}) == ()


def test_another_driver_s_devices_are_none_of_ours() -> None:
    claimed = Claimed("dra.net", "node-1", "gpu-0")
    assert resolved(claimed, GPUS, {claimed: "GPU-0"}) == ()
