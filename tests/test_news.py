from __future__ import annotations

import logging

from otel_gpu.model import Device, Refused, Snapshot, System
from otel_gpu.news import news
from tests.machine import gpu

FIRST, SECOND = gpu(0), gpu(1)
DEVICES = {device.uuid: device for device in (FIRST, SECOND)}


def snapshot(*answering: Device, trouble: str = "") -> Snapshot:
    up = {uuid: device in answering for uuid, device in DEVICES.items()}
    return Snapshot(devices=DEVICES, up=up, trouble=trouble)


def test_a_gpu_that_stops_answering_is_an_error_and_its_return_is_not() -> None:
    both, one = snapshot(FIRST, SECOND), snapshot(FIRST)
    ((level, line),) = news(both, one)
    assert level == logging.ERROR
    assert line.startswith(f"GPU {SECOND.uuid} ")
    assert list(news(one, one)) == []
    ((level, line),) = news(one, both)
    assert (level, line.endswith("answers again")) == (logging.INFO, True)


def test_where_the_driver_is_shut_no_gpu_is_blamed() -> None:
    both = snapshot(FIRST, SECOND)
    shut = snapshot(trouble="the GPUs are released")
    assert list(news(both, shut)) == list(news(shut, shut)) == list(news(shut, both)) == []


def test_a_gpu_that_cannot_be_opened_is_told_once() -> None:
    refused = Snapshot(system=System(refused=(Refused(3, 15),)))
    ((level, line),) = news(Snapshot(), refused)
    assert (level, "GPU 3 is counted but cannot be opened" in line) == (logging.ERROR, True)
    assert list(news(refused, refused)) == []
