"""Which GPU a device id of the kubelet's means. Pure.

Device plugins write them: NVIDIA's a UUID, with `::N` for a replica (time-slicing, MPS); older ones
`MIG-GPU-<uuid>/<gi>/<ci>` for an instance; Google's the name of the device file, `nvidia0`, with
`/gi1` for an instance and `/vgpu2` for a replica.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from otel_gpu.model import Device

_REPLICA = re.compile(r"(?:::\d+|/vgpu\d+)$")
_OLD_INSTANCE = re.compile(r"MIG-(GPU-.+)/(\d+)/(\d+)")
_FILE = re.compile(r"(nvidia\d+)(?:/gi(\d+))?")


def whole(device_id: str) -> str:
    """Give the id of the device of which this one may be a replica."""
    return _REPLICA.sub("", device_id)


def meant(device_id: str, devices: Sequence[Device]) -> tuple[Device, ...]:
    """Give the GPU or instance; several where a GPU instance has several compute instances."""
    fits = _rule(whole(device_id))
    return tuple(device for device in devices if fits(device))


def _rule(name: str) -> Callable[[Device], bool]:
    if old := _OLD_INSTANCE.fullmatch(name):
        parent, gpu_instance, compute_instance = old[1], int(old[2]), int(old[3])
        return lambda device: (
            (device.parent, device.gpu_instance, device.compute_instance)
            == (parent, gpu_instance, compute_instance)
        )
    if file := _FILE.fullmatch(name):
        number = -1 if file[2] is None else int(file[2])
        return lambda device: (
            device.name == file[1]
            and device.gpu_instance == number
            and device.is_instance == (number >= 0)
        )
    return lambda device: device.uuid == name
