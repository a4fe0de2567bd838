"""Which GPU or MIG instance a happening is about, as far as the snapshot knows it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from otel_gpu.events.happening import NO_INSTANCE, Happening
from otel_gpu.model import Device, Snapshot


def located(happening: Happening, snapshot: Snapshot) -> str | None:
    """Give what its counts are kept under; None for a GPU that the configuration leaves out."""
    if happening.switch:
        return happening.switch
    device = gpu(happening, snapshot)
    if device is None:
        return happening.uuid or happening.pci_address
    return device.uuid if is_included(device, snapshot) else None


def gpu(happening: Happening, snapshot: Snapshot) -> Device | None:
    """Find the whole GPU, also one that is gone or that the configuration leaves out."""
    return next((device for device in gpus(snapshot) if is_of(happening, device)), None)


def instance(happening: Happening, parent: Device, snapshot: Snapshot) -> Device | None:
    """Find the MIG instance, if the happening names one, and no other could be meant."""
    if happening.gpu_instance == NO_INSTANCE:
        return None
    found = [
        device
        for device in snapshot.devices.values()
        if device.parent == parent.uuid
        and device.gpu_instance == happening.gpu_instance
        and happening.compute_instance in {NO_INSTANCE, device.compute_instance}
    ]
    return found[0] if len(found) == 1 else None


def gpus(snapshot: Snapshot) -> Iterator[Device]:
    """Give every whole GPU: those that were ever seen, and those that are left out."""
    for device in (*snapshot.devices.values(), *snapshot.system.devices):
        if not device.is_instance:
            yield device


def is_of(happening: Happening, device: Device) -> bool:
    """Whether it names this GPU: by UUID, or by the place on the bus."""
    if happening.uuid:
        return happening.uuid == device.uuid
    return bool(device.pci_address) and happening.pci_address == device.pci_address


def is_included(device: Device, snapshot: Snapshot) -> bool:
    """Whether the GPU is read, or an instance on it."""
    return device.uuid in snapshot.devices or any(
        one.parent == device.uuid for one in snapshot.devices.values()
    )
