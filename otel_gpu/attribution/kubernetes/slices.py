"""Which GPU a device of a ResourceSlice is (dynamic resource allocation). Pure.

Source: kubernetes.io, "Dynamic Resource Allocation", resource.k8s.io/v1, v1beta2 and v1beta1; the
attributes are those that NVIDIA's DRA driver publishes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from otel_gpu.attribution.kubernetes.resources import Claimed
from otel_gpu.model import Device

DRIVER = "gpu.nvidia.com"
_GPU = re.compile(r"gpu-(\d+)")

Uuids = Mapping[Claimed, str]
"""The UUID of each device that some slice describes."""


def uuids(slices: Iterable[Mapping[str, Any]]) -> Uuids:
    """Read ResourceSlice objects as the API gives them; what is not as described is left out."""
    found: dict[Claimed, str] = {}
    for one in slices:
        spec = one.get("spec") or {}
        pool = (spec.get("pool") or {}).get("name", "")
        for device in spec.get("devices") or ():
            described = device.get("basic") or device  # v1beta1 has it one level down
            uuid = _attribute(described.get("attributes") or {}, "uuid")
            if uuid:
                found[Claimed(spec.get("driver", ""), pool, device.get("name", ""))] = uuid
    return found


def resolved(claimed: Claimed, devices: Sequence[Device], known: Uuids) -> tuple[Device, ...]:
    """Give the GPU of a claimed device.

    Without its slice a whole GPU is told by its name, whose number has been NVML's index in some
    versions of the driver and is the device file's in others: only where both are the same.
    """
    if claimed.driver != DRIVER:
        return ()
    uuid = known.get(claimed)
    if uuid:
        return tuple(device for device in devices if device.uuid == uuid)
    named = _GPU.fullmatch(claimed.device)
    number = int(named[1]) if named else None
    return tuple(
        device
        for device in devices
        if not device.is_instance and device.minor == device.index == number
    )


def _attribute(attributes: Mapping[str, Any], name: str) -> str:
    """Give a string attribute, whose name may have the driver's domain before it."""
    value = attributes.get(name) or attributes.get(f"{DRIVER}/{name}") or {}
    text = value.get("string", "")
    return text if isinstance(text, str) else ""
