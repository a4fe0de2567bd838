from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from otel_gpu.backends import identity
from otel_gpu.model import Device

H200: Mapping[str, Any] = {
    "nvmlDeviceGetMinorNumber": 3,
    "nvmlDeviceGetName": "NVIDIA H200",
    "nvmlDeviceGetSerial": "1650000000000",
    "nvmlDeviceGetPciInfo": {"busId": "00000000:3B:00.0", "busIdLegacy": "0000:3B:00.0"},
    "nvmlDeviceGetVbiosVersion": "96.00.A5.00.1A",
    "nvmlDeviceGetGspFirmwareVersion": "580.159.04",
    "nvmlDeviceGetBoardPartNumber": "692-2G520-0282-001",
    "nvmlDeviceGetArchitecture": 9,
    "nvmlDeviceGetCudaComputeCapability": [9, 0],
    "nvmlDeviceGetNumFans": 0,
}
GPU = identity.gpu("GPU-a", 5, H200.get)


def test_a_gpu_is_described_by_what_nvml_says_of_it() -> None:
    assert (
        Device(
            uuid="GPU-a",
            index=5,
            minor=3,
            model="NVIDIA H200",
            serial="1650000000000",
            pci_address="0000:3b:00.0",
            bios_version="96.00.A5.00.1A",
            firmware_version="580.159.04",
            part_number="692-2G520-0282-001",
            architecture="Hopper",
            compute_capability="9.0",
        )
        == GPU
    )


def test_facts_that_are_refused_stay_empty() -> None:
    assert identity.gpu("GPU-a", 0, lambda _name: None) == Device(uuid="GPU-a", index=0, minor=-1)


PROFILE = {"decoderCount": 7, "encoderCount": 0, "jpegCount": 7, "ofaCount": 1, "sliceCount": 7}


def test_a_gpu_is_equipped_with_what_its_largest_profile_its_links_and_its_chip_say() -> None:
    facts = {identity.WHOLE_GPU: PROFILE, "nvmlDeviceGetC2cModeInfoV": {"isC2cEnabled": 1}}
    device = identity.equipped(GPU, facts.get, {91: 18, 166: 6}.get)
    assert (device.decoders, device.encoders, device.jpegs, device.ofas) == (7, 0, 7, 1)
    assert (device.nvlinks, device.nvlink_version, device.c2c) == (18, 6, True)
    assert device.model == GPU.model


def test_what_a_gpu_does_not_tell_of_its_equipment_is_not_there() -> None:
    assert identity.equipped(GPU, lambda _name: None, lambda _number: None) == GPU


@pytest.mark.parametrize("told", [18.0, float("nan"), -1, "18", None])
def test_a_number_of_links_that_is_none_is_not_believed(told: Any) -> None:
    assert identity.equipped(GPU, lambda _name: None, {91: told, 166: 6}.get) == GPU
    version = identity.equipped(GPU, lambda _name: None, {91: 18, 166: told}.get).nvlink_version
    assert version == 0


def test_without_links_their_version_is_not_asked() -> None:
    asked: list[int] = []
    identity.equipped(GPU, lambda _name: None, asked.append)
    assert asked == [identity.LINK_COUNT]


def test_an_instance_has_none_of_its_gpus_equipment() -> None:
    facts = {identity.WHOLE_GPU: PROFILE, "nvmlDeviceGetC2cModeInfoV": {"isC2cEnabled": 1}}
    whole = identity.equipped(GPU, facts.get, {91: 18, 166: 6}.get)
    instance = identity.instance(whole, "MIG-a", 7, lambda _name: None)
    assert (instance.decoders, instance.encoders, instance.jpegs, instance.ofas) == (0, 0, 0, 0)
    assert (instance.nvlinks, instance.c2c, instance.fans) == (0, False, 0)


def test_an_instance_has_its_gpus_facts_and_its_own_place() -> None:
    facts = {
        "nvmlDeviceGetName": "NVIDIA H200 MIG 1c.3g.71gb",
        "nvmlDeviceGetGpuInstanceId": 2,
        "nvmlDeviceGetComputeInstanceId": 0,
    }
    instance = identity.instance(GPU, "MIG-a", 7, facts.get)
    assert (instance.uuid, instance.parent, instance.index) == ("MIG-a", "GPU-a", 5)
    assert (instance.model, instance.name) == ("NVIDIA H200", "nvidia3")
    assert (instance.mig_profile, instance.mig_slots) == ("1c.3g.71gb", 7)
    assert (instance.gpu_instance, instance.compute_instance) == (2, 0)


def test_an_instance_that_tells_nothing_has_no_place() -> None:
    instance = identity.instance(GPU, "MIG-a", 7, lambda _name: None)
    assert (instance.mig_profile, instance.gpu_instance, instance.compute_instance) == ("", -1, -1)


@pytest.mark.parametrize(
    ("bus_id", "address"),
    [
        ("00000000:3B:00.0", "0000:3b:00.0"),
        ("0000:06:00.1", "0000:06:00.1"),
        ("00010000:C1:00.0", "10000:c1:00.0"),
        ("", ""),
        ("none", ""),
    ],
)
def test_a_pci_address_is_written_as_sysfs_writes_it(bus_id: str, address: str) -> None:
    assert identity.pci_address({"busId": bus_id}) == address


@pytest.mark.parametrize(
    ("number", "word"),
    [(6, "Turing"), (8, "Ada"), (10, "Blackwell"), (13, "Rubin"), (99, "99"), (0xFFFFFFFF, "")],
)
def test_an_architecture_is_a_word_or_a_number_but_never_a_guess(number: int, word: str) -> None:
    assert identity.architecture(number) == word


@pytest.mark.parametrize(("number", "text"), [(13000, "13.0"), (12040, "12.4"), (None, "")])
def test_a_cuda_version_is_written_as_people_do(number: int | None, text: str) -> None:
    assert identity.cuda_version(number) == text


MAPS = """\
7f0000000000-7f0000001000 r--p 00000000 00:1f 11 /usr/lib/libc.so.6
7f0000002000-7f0000003000 rw-p 00000000 00:00 0
7f0000004000-7f0000005000 r--p 00000000 00:1f 12 /opt/my drivers/libnvidia-ml.so.580.159.04
7f0000006000-7f0000007000 r--p 00000000 00:1f 13 /usr/lib/libnvidia-ml.so.1
"""


def test_the_library_is_the_file_that_is_mapped() -> None:
    found = identity.mapped_library(MAPS, "libnvidia-ml.so.1")
    assert found == "/opt/my drivers/libnvidia-ml.so.580.159.04"
    assert identity.mapped_library(MAPS, "libcuda.so.1") == ""
