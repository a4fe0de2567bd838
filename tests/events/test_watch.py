"""The watch: both sources in, counts and records out."""

from __future__ import annotations

import logging
import os
import socket

import pytest
from opentelemetry.sdk.resources import Resource

from otel_gpu.events.export import Outlet
from otel_gpu.events.kernel_log import KernelLog
from otel_gpu.events.watch import Watch, kernel_log
from otel_gpu.model import Device, Event, EventKind, Snapshot, System

GPU = Device(uuid="GPU-1", index=0, minor=0, pci_address="0000:00:06.0")
WHOLE = 0xFFFFFFFF
LINE = "NVRM: Xid (PCI:0000:00:06): 31, pid=735, name=train, MMU Fault: ENGINE GRAPHICS"


def snapshot(*unheard: str) -> Snapshot:
    system = System(devices=(GPU,), unheard=unheard)
    return Snapshot(system=system, devices={GPU.uuid: GPU}, up={GPU.uuid: True})


def xid(code: int, time_ns: int = 1) -> Event:
    return Event(GPU.uuid, EventKind.XID, code, WHOLE, WHOLE, time_ns)


def watch(kernel: KernelLog | None = None, *, xid: bool = True) -> Watch:
    return Watch(Outlet([], Resource({}), "0"), kernel, xid=xid)


def by_class(one: Watch, at: Snapshot) -> dict[str, float]:
    return {str(point.attributes[0][1]): point.value for _, point in one.errors(at)}


def test_an_event_of_the_driver_counts_and_is_told_at_once_without_a_kernel_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    one = watch()
    with caplog.at_level(logging.INFO, "otel_gpu.events"):
        one.turn([xid(79)], snapshot(), 1.0)
    assert by_class(one, snapshot())["node"] == 1
    assert ["Xid 79" in record.getMessage() for record in caplog.records] == [True]


def test_the_event_and_the_kernel_s_line_are_one_xid_with_its_pid(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ours, kernel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, kernel:
        one = watch(KernelLog(os.dup(ours.fileno())))
        kernel.send(f"3,1,100,-;{LINE}\n".encode())
        with caplog.at_level(logging.INFO, "otel_gpu.events"):
            one.turn([xid(31)], snapshot(), 1.0)
        assert by_class(one, snapshot())["application"] == 1
        assert ["735 train" in record.getMessage() for record in caplog.records] == [True]


def test_what_waits_for_the_kernel_is_told_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    ours, kernel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, kernel:
        one = watch(KernelLog(os.dup(ours.fileno())))
        with caplog.at_level(logging.INFO, "otel_gpu.events"):
            one.turn([xid(48)], snapshot(), 1.0)
            assert not caplog.records
            one.close(snapshot())
    assert len(caplog.records) == 1


def test_a_gpu_of_which_nobody_tells_has_no_count_rather_than_0() -> None:
    one = watch()
    assert by_class(one, snapshot())
    assert not by_class(one, snapshot(GPU.uuid))


def test_a_change_of_instances_is_no_xid() -> None:
    one = watch()
    one.turn([Event(GPU.uuid, EventKind.MIG, 0, WHOLE, WHOLE, 1)], snapshot(), 1.0)
    assert set(by_class(one, snapshot()).values()) == {0}


def test_switched_off_it_counts_nothing() -> None:
    one = watch(xid=False)
    one.turn([xid(79)], snapshot(), 1.0)
    assert not by_class(one, snapshot())
    assert not list(one.code_errors(snapshot()))


def test_the_kernel_log_is_not_opened_when_it_is_off() -> None:
    assert kernel_log("off") is None
