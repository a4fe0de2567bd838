"""Every form of device id, and which GPU or instance it means."""

from dataclasses import replace

import pytest

from otel_gpu.attribution.kubernetes.ids import meant
from tests.machine import gpu, instance

WHOLE, SPLIT = gpu(0), gpu(1)  # nvidia4 and nvidia5
SLICE = instance(SPLIT, 3)
PAIR = (
    replace(instance(SPLIT, 4), uuid="MIG-1-4a"),
    replace(instance(SPLIT, 4), uuid="MIG-1-4b", compute_instance=1),
)
DEVICES = (WHOLE, SPLIT, SLICE, *PAIR)


@pytest.mark.parametrize(
    ("device_id", "expected"),
    [
        ("GPU-0", ["GPU-0"]),
        ("GPU-0::0", ["GPU-0"]),
        ("GPU-0::11", ["GPU-0"]),
        ("MIG-1-3", ["MIG-1-3"]),
        ("MIG-1-3::2", ["MIG-1-3"]),
        ("MIG-GPU-1/3/0", ["MIG-1-3"]),
        ("MIG-GPU-1/4/1", ["MIG-1-4b"]),
        ("MIG-GPU-1/3/0::1", ["MIG-1-3"]),
        ("nvidia4", ["GPU-0"]),
        ("nvidia4/vgpu2", ["GPU-0"]),
        ("nvidia5/gi3", ["MIG-1-3"]),
        ("nvidia5/gi3/vgpu0", ["MIG-1-3"]),
        ("nvidia5/gi4", ["MIG-1-4a", "MIG-1-4b"]),
        ("nvidia0", []),
        ("nvidia4/gi3", []),
        ("MIG-GPU-1/9/0", []),
        ("GPU-9", []),
        ("0", []),
        ("", []),
        ("nvidia4::x", []),
    ],
)
def test_a_device_id_means(device_id: str, expected: list[str]) -> None:
    assert [device.uuid for device in meant(device_id, DEVICES)] == expected


def test_a_gpu_without_a_device_file_is_meant_by_no_name_of_one() -> None:
    assert meant("nvidia-1", [replace(WHOLE, minor=-1)]) == ()
