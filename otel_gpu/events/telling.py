"""A happening as a log record: which GPU, what it means, what to do, whose work it was. Pure."""

from __future__ import annotations

from dataclasses import replace

from otel_gpu.events.codes import Xid, explained
from otel_gpu.events.happening import NO_INSTANCE, Happening
from otel_gpu.events.record import Record, Severity, called, holder, identity, known
from otel_gpu.events.subject import gpu, instance
from otel_gpu.model import Attributes, Snapshot

XID = "nvidia.gpu.xid"
SXID = "nvidia.nvswitch.sxid"


def told(happening: Happening, snapshot: Snapshot) -> Record:
    """Make the record of one Xid, or of a switch's SXid."""
    return _record(happening, snapshot, "")


def repeated(last: Happening, rest: int, snapshot: Snapshot, window_s: float) -> Record:
    """Make the record of those that had none of their own, from the last of them."""
    more = f" came {rest} times more within {window_s:.0f} s, of which this is the last"
    record = _record(last, snapshot, more)
    repeats = (f"{record.event_name}.repeats", rest)
    return replace(record, attributes=(*record.attributes, repeats))


def _record(happening: Happening, snapshot: Snapshot, more: str) -> Record:
    return _sxid(happening, more) if happening.switch else _xid(happening, snapshot, more)


def _xid(happening: Happening, snapshot: Snapshot, more: str) -> Record:
    xid = explained(happening.code)
    headline = f"Xid {xid.code} ({xid.name}) on {_where(happening, snapshot)}"
    return Record(
        time_ns=happening.time_ns,
        severity=xid.severity,
        event_name=XID,
        body=f"{headline}{more}: {xid.meaning} {xid.action}",
        attributes=(
            *_code(xid),
            *_subject(happening, snapshot),
            *known(
                ("process.pid", happening.pid),
                ("process.executable.name", happening.process),
                ("nvidia.gpu.xid.cause", None if happening.cause is None else str(happening.cause)),
                ("log.record.original", happening.text),
            ),
        ),
    )


def _where(happening: Happening, snapshot: Snapshot) -> str:
    device = gpu(happening, snapshot)
    where = called(device) if device else happening.uuid or happening.pci_address
    if happening.gpu_instance != NO_INSTANCE:
        where += f", MIG {happening.gpu_instance}"
        if happening.compute_instance != NO_INSTANCE:
            where += f"/{happening.compute_instance}"
    if happening.pid is not None:
        where += f", process {happening.pid} {happening.process}".rstrip()
    return where


def _code(xid: Xid) -> Attributes:
    return (
        ("nvidia.gpu.xid", str(xid.code)),
        ("nvidia.gpu.xid.class", str(xid.reach)),
        ("nvidia.gpu.xid.name", xid.name),
        ("nvidia.gpu.xid.meaning", xid.meaning),
        ("nvidia.gpu.xid.action", xid.action),
    )


def _subject(happening: Happening, snapshot: Snapshot) -> Attributes:
    """Say whose it is. The counters are the GPU's, so `hw.id` is, also where an instance is named.

    The owner is the instance's, where one is named.
    """
    device = gpu(happening, snapshot)
    part = instance(happening, device, snapshot) if device else None
    place = known(("nvidia.gpu.pci.address", happening.pci_address), ("hw.id", happening.uuid))
    return (
        *(identity(device) if device else place),
        *_instance(happening, part.mig_profile if part else ""),
        *(holder(snapshot, (part or device).uuid) if device else ()),
    )


def _instance(happening: Happening, profile: str) -> Attributes:
    ids = (happening.gpu_instance, happening.compute_instance)
    gpu_instance, compute_instance = (None if one == NO_INSTANCE else one for one in ids)
    return known(
        ("nvidia.gpu.mig.profile", profile),
        ("nvidia.gpu.mig.gpu_instance", gpu_instance),
        ("nvidia.gpu.mig.compute_instance", compute_instance),
    )


def _sxid(happening: Happening, more: str) -> Record:
    """Make the record of an SXid, of which nothing is known but the kernel's own words."""
    return Record(
        time_ns=happening.time_ns,
        severity=Severity.ERROR if happening.fatal else Severity.WARN,
        event_name=SXID,
        body=f"SXid {happening.code} on {happening.switch}, {happening.pci_address}{more}: "
        f"{happening.text}",
        attributes=(
            ("nvidia.nvswitch.sxid", str(happening.code)),
            ("hw.name", happening.switch),
            ("nvidia.nvswitch.pci.address", happening.pci_address),
            ("log.record.original", happening.text),
        ),
    )
