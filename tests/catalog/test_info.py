"""The facts of a GPU on its info series: what is known, and nothing that is not."""

from dataclasses import replace

from otel_gpu.catalog.info import facts
from otel_gpu.model import Device
from tests.machine import gpu, instance


def told(device: Device) -> dict[str, object]:
    (point,) = facts(device)
    assert point.value == 1
    return dict(point.attributes)


def test_a_gpu_tells_all_that_is_known_of_it() -> None:
    assert told(gpu()) == {
        "hw.vendor": "NVIDIA",
        "hw.model": "NVIDIA H200",
        "hw.serial_number": "165200",
        "hw.driver_version": "580.159.04",
        "hw.bios_version": "96.00.cf.00.01",
        "hw.firmware_version": "580.159.04",
        "nvidia.gpu.index": 0,
        "nvidia.gpu.pci.address": "0000:3b:00.0",
        "nvidia.gpu.architecture": "Hopper",
        "nvidia.gpu.compute_capability": "9.0",
        "nvidia.gpu.board.part_number": "900-21010-0040-000",
    }


def test_what_is_not_known_has_no_attribute() -> None:
    assert told(Device(uuid="GPU-x", index=0, minor=-1)) == {
        "hw.vendor": "NVIDIA",
        "nvidia.gpu.index": 0,
    }
    assert "hw.serial_number" not in told(replace(gpu(), serial=""))


def test_an_instance_leaves_the_facts_of_the_board_to_its_gpu() -> None:
    assert told(gpu()).keys() - told(instance(gpu())).keys() == {
        "hw.serial_number",
        "hw.bios_version",
        "hw.firmware_version",
        "nvidia.gpu.board.part_number",
    }
