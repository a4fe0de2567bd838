"""Two GPUs, the second in three MIG instances, and what may happen to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from otel_gpu.events.happening import Happening, Source, reported
from otel_gpu.events.record import Record
from otel_gpu.model import Device, Owner, Snapshot, System
from tests.machine import gpu, instance

NOW_NS = 1_800_000_000_000_000_000
WHOLE = 0xFFFFFFFF

FIRST, SECOND, HIDDEN = gpu(0), gpu(1), gpu(2)
PART = instance(SECOND, 5)
TWINS = tuple(replace(instance(SECOND, place), gpu_instance=9) for place in (7, 8))
TRAIN = Owner((("k8s.pod.name", "train-0"),), (("k8s.pod.uid", "u-1"),))
INFER = Owner((("k8s.pod.name", "infer-0"),))


def machine(*devices: Device, **given: Any) -> Snapshot:
    """Give a snapshot: the GPU that the configuration leaves out is enumerated all the same."""
    seen = devices or (FIRST, SECOND, PART, *TWINS)
    return Snapshot(
        time_ns=NOW_NS,
        system=System(devices=(*seen, HIDDEN)),
        devices={device.uuid: device for device in seen},
        owners={FIRST.uuid: (TRAIN,), PART.uuid: (INFER,), SECOND.uuid: (TRAIN, INFER)},
        **given,
    )


def event(code: int = 31, device: Device = FIRST, gi: int = WHOLE, ci: int = WHOLE) -> Happening:
    """Give the driver's event."""
    return reported(device.uuid, code, gi, ci, NOW_NS)


def line(code: int = 31, device: Device = FIRST, **given: Any) -> Happening:
    """Give the kernel's line."""
    told: dict[str, Any] = {"pid": 735, "process": "python", "text": "MMU Fault"}
    return Happening(
        source=Source.KERNEL,
        code=code,
        time_ns=NOW_NS,
        pci_address=device.pci_address,
        **(told | given),
    )


def note(device: Device = FIRST) -> Happening:
    """Give the kernel's remark that a GPU is gone."""
    return Happening(
        source=Source.NOTE,
        code=79,
        time_ns=NOW_NS,
        pci_address=device.pci_address,
        text="fallen",
    )


def said(record: Record) -> dict[str, Any]:
    """Give the attributes of a record."""
    return dict(record.attributes)
