"""Changes of a GPU's health (`hw.status`) as log records. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from otel_gpu.events.record import Record, Severity, called, holder, identity, known
from otel_gpu.model import Reading, Snapshot

METRIC = "hw.status"
STATUS = "nvidia.gpu.status"

SEVERITIES: Mapping[str, Severity] = {
    "ok": Severity.INFO,
    "degraded": Severity.WARN,
    "predicted_failure": Severity.WARN,
    "failed": Severity.ERROR,
}

States = Mapping[str, str]
"""The `hw.state` of each GPU, by UUID, as it was read last."""


def changed(states: States, snapshot: Snapshot) -> tuple[States, list[Record]]:
    """Compare with what was known; give what is known now, and a record for each change.

    A GPU that is ok when it is first read has not changed. One whose status cannot be read keeps
    the last: what is not known is no change.
    """
    known_now = {**states, **dict(current(snapshot))}
    now = {uuid: state for uuid, state in known_now.items() if uuid in snapshot.devices}
    records = [
        record(snapshot, uuid, states.get(uuid, ""), state)
        for uuid, state in now.items()
        if state != states.get(uuid, "ok")
    ]
    return now, records


def current(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Give the state of each GPU whose status is known."""
    for reading in snapshot.readings:
        if reading.metric.name == METRIC and (state := state_of(reading)):
            yield reading.device, state


def state_of(reading: Reading) -> str:
    """Give the state whose point is 1; "" when none is."""
    there = (dict(point.attributes) for point in reading.points if point.value == 1)
    return next((str(attributes.get("hw.state", "")) for attributes in there), "")


def record(snapshot: Snapshot, uuid: str, before: str, after: str) -> Record:
    """Make the record of one change; `before` is "" when the status is read for the first time."""
    device = snapshot.devices[uuid]
    change = f"was {before} and is {after}" if before else f"is {after}"
    return Record(
        time_ns=snapshot.time_ns,
        severity=SEVERITIES.get(after, Severity.WARN),
        event_name=STATUS,
        body=f"GPU {called(device)} {change}",
        attributes=(
            *known(("hw.state", after), ("nvidia.gpu.status.previous", before)),
            *identity(device),
            *holder(snapshot, uuid),
        ),
    )
