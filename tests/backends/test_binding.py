from __future__ import annotations

from typing import Any

from otel_gpu.backends.binding import WHOLE, BindListener
from otel_gpu.model import Answer, Event, EventKind

UNBIND, BIND, UNKNOWN = 1, 2, 4


class Driver:
    """The driver's functions for system events; `happened` is told once."""

    def __init__(self, refuses: str = "") -> None:
        self.happened: list[dict[str, int]] = []
        self.open = 0
        self._refuses = refuses

    def __call__(self, _uuid: str, name: str, *arguments: Any) -> Answer:
        if name == self._refuses:
            return Answer(3)
        if name == "nvmlSystemEventSetCreate":
            self.open += 1
            return Answer(0, object())
        if name == "nvmlSystemEventSetFree":
            self.open -= 1
        if name == "nvmlSystemEventSetWait":
            told, self.happened = self.happened[: arguments[-1]], []
            return Answer(0, told)
        return Answer(0)


def listening(driver: Driver) -> BindListener:
    listener = BindListener(driver, lambda count: [None] * count, unix_ns=lambda: 7)
    listener.listen()
    return listener


def test_gpus_that_leave_and_come_are_told() -> None:
    driver = Driver()
    listener = listening(driver)
    driver.happened = [{"eventType": kind, "gpuId": 0x4500} for kind in (UNBIND, UNKNOWN, BIND)]
    assert listener.poll() == [
        Event("", EventKind.UNBIND, 0x4500, WHOLE, WHOLE, 7),
        Event("", EventKind.BIND, 0x4500, WHOLE, WHOLE, 7),
    ]
    assert listener.poll() == []


def test_the_set_is_given_back() -> None:
    driver = Driver()
    listening(driver).close()
    assert driver.open == 0


def test_a_driver_that_knows_no_such_events_tells_of_none() -> None:
    for name in ("nvmlSystemEventSetCreate", "nvmlSystemRegisterEvents", "nvmlSystemEventSetWait"):
        driver = Driver(refuses=name)
        listener = listening(driver)
        driver.happened = [{"eventType": UNBIND, "gpuId": 0}]
        assert listener.poll() == []
        listener.close()
        assert driver.open == 0


def test_a_pynvml_that_knows_no_such_events_tells_of_none() -> None:
    listener = BindListener(Driver(), None)
    listener.listen()
    assert listener.poll() == []
    listener.close()
