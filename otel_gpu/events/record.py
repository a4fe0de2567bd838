"""A log record in our own words: what happened, how bad it is, to whom. Pure.

`export` turns it into OTel's, or into a line of the agent's log.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from otel_gpu.model import Attributes, AttributeValue, Device, Snapshot


class Severity(IntEnum):
    """OTel's severity numbers, of each range the first (logs data model, SeverityNumber)."""

    INFO = 9
    WARN = 13
    ERROR = 17
    FATAL = 21


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One event. `time_ns` is Unix nanoseconds; `body` is a line for people, without a line end."""

    time_ns: int
    severity: Severity
    event_name: str
    body: str
    attributes: Attributes = ()


def known(*pairs: tuple[str, AttributeValue | None]) -> Attributes:
    """Keep the attributes that have a value; what is not known has no attribute."""
    return tuple((key, value) for key, value in pairs if value not in {None, ""})


def identity(device: Device) -> Attributes:
    """Say which GPU or MIG instance it is, in the words that its metrics have."""
    return known(
        ("hw.id", device.uuid),
        ("hw.name", device.name),
        ("hw.type", "gpu"),
        ("hw.parent", device.parent),
        ("nvidia.gpu.pci.address", device.pci_address),
    )


def holder(snapshot: Snapshot, uuid: str) -> Attributes:
    """Say who holds a GPU or an instance, while it is one owner alone."""
    owners = snapshot.owners.get(uuid, ())
    return owners[0].attributes + owners[0].resource if len(owners) == 1 else ()


def called(device: Device) -> str:
    """Name a GPU for people: its device file, its UUID, its place on the bus, as far as known."""
    return ", ".join(filter(None, (device.name, device.uuid, device.pci_address)))
