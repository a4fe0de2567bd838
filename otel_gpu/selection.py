"""Which of the enumerated GPUs and MIG instances are read (`gpus.include`, `gpus.mig`). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from otel_gpu.model import Device

Include = Literal["all"] | Sequence[str | int]
Mig = Literal["gpus", "instances", "both"]


def chosen(devices: Sequence[Device], include: Include, mig: Mig) -> tuple[Device, ...]:
    """Give the selected devices; an instance goes with its GPU.

    `instances` leaves out GPUs that have instances, and keeps those that have none.
    """
    named = {device.uuid for device in devices if included(device, include)}
    parents = {device.parent for device in devices if device.is_instance}
    return tuple(
        device
        for device in devices
        if (device.uuid in named or device.parent in named) and wanted(device, parents, mig)
    )


def included(device: Device, include: Include) -> bool:
    """Whether the configuration names this device, by UUID, index or PCI address."""
    if include == "all":
        return True
    words = {str(word).lower() for word in include}
    names = {device.uuid.lower(), device.pci_address.lower()}
    if not device.is_instance:  # an instance has its own UUID, and its GPU's index
        names.add(str(device.index))
    return not words.isdisjoint(names - {""})


def wanted(device: Device, parents: set[str], mig: Mig) -> bool:
    """Whether the MIG mode of the configuration takes this device."""
    if device.is_instance:
        return mig != "gpus"
    return mig != "instances" or device.uuid not in parents
