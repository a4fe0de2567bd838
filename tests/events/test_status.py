"""A record for each change of a GPU's health, and none while nothing changes."""

from __future__ import annotations

import pytest

from otel_gpu.catalog.reading import supplied
from otel_gpu.events.record import Severity
from otel_gpu.events.status import METRIC, States, changed
from otel_gpu.model import Kind, Metric, Point, Reading, Snapshot
from tests.events.box import FIRST, NOW_NS, SECOND, machine, said

STATES = ("ok", "degraded", "predicted_failure", "failed")
STATUS = Metric(
    name=METRIC, kind=Kind.UPDOWNCOUNTER, unit="1", brief="Health.", read=supplied("the test")
)


def read(**states: str) -> Snapshot:
    """Give a snapshot in which the first and the second GPU are in these states."""
    readings = tuple(
        Reading(
            STATUS,
            {"first": FIRST, "second": SECOND}[name].uuid,
            tuple(Point(int(one == state), (("hw.state", one),)) for one in STATES),
            NOW_NS,
            0.0,
        )
        for name, state in states.items()
    )
    return machine(readings=readings)


def after(*snapshots: Snapshot) -> list[str]:
    """Give the bodies of the records that a course of snapshots makes."""
    states: States = {}
    bodies: list[str] = []
    for snapshot in snapshots:
        states, records = changed(states, snapshot)
        bodies += [record.body for record in records]
    return bodies


def test_a_gpu_that_is_and_stays_ok_is_not_mentioned() -> None:
    assert after(read(first="ok"), read(first="ok", second="ok")) == []


def test_each_change_is_told_once() -> None:
    first = "GPU nvidia4, GPU-0, 0000:3b:00.0"
    assert after(
        read(first="ok"),
        read(first="degraded"),
        read(first="degraded"),
        read(first="failed", second="ok"),
        read(first="ok"),
    ) == [
        f"{first} was ok and is degraded",
        f"{first} was degraded and is failed",
        f"{first} was failed and is ok",
    ]


def test_a_gpu_that_is_not_ok_when_it_is_first_read_is_told() -> None:
    assert after(read(first="failed")) == ["GPU nvidia4, GPU-0, 0000:3b:00.0 is failed"]


def test_what_cannot_be_read_for_a_while_is_no_change() -> None:
    assert after(read(first="ok"), read(), read(first="ok")) == []
    assert len(after(read(first="degraded"), read(), read(first="degraded"))) == 1


def test_a_gpu_that_nobody_knows_any_more_is_forgotten() -> None:
    states, _ = changed({}, read(first="failed"))
    states, records = changed(states, Snapshot())
    assert (dict(states), records) == ({}, [])


@pytest.mark.parametrize(
    ("state", "severity"),
    [
        ("degraded", Severity.WARN),
        ("predicted_failure", Severity.WARN),
        ("failed", Severity.ERROR),
    ],
)
def test_a_record_says_which_gpu_and_how_bad(state: str, severity: Severity) -> None:
    states, _ = changed({}, read(first="ok"))
    _, (record,) = changed(states, read(first=state))
    assert (record.event_name, record.severity) == ("nvidia.gpu.status", severity)
    assert record.time_ns == NOW_NS
    assert said(record) == {
        "hw.state": state,
        "nvidia.gpu.status.previous": "ok",
        "hw.id": "GPU-0",
        "hw.name": "nvidia4",
        "hw.type": "gpu",
        "nvidia.gpu.pci.address": "0000:3b:00.0",
        "k8s.pod.name": "train-0",
        "k8s.pod.uid": "u-1",
    }


def test_a_gpu_that_is_well_again_is_good_news() -> None:
    states, _ = changed({}, read(first="failed"))
    _, (record,) = changed(states, read(first="ok"))
    assert record.severity is Severity.INFO


def test_a_reading_in_which_no_state_holds_says_nothing() -> None:
    nothing = Reading(STATUS, FIRST.uuid, (Point(0, (("hw.state", "ok"),)),), NOW_NS, 0.0)
    assert changed({}, machine(readings=(nothing,))) == ({}, [])
