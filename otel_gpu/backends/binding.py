"""The driver's system events (R575): a GPU is about to leave the driver, or has come to it.

Who has the devices open stands in the way of a GPU that is unbound, for another driver or a virtual
machine, so this is told to the agent, which lets go. Nothing here imports pynvml; the driver's
functions come with the constructor. An older driver, or an older pynvml, tells of nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from otel_gpu.model import Answer, Event, EventKind

# nvml.h: each is the size of its structure and the version 1.
SET = 0x1000010
REGISTER = 0x1000018
WAIT = 0x1000020
KINDS = {0x1: EventKind.UNBIND, 0x2: EventKind.BIND}  # nvmlSystemEventTypeGpuDriverUnbind, -Bind
ROOM = 16
WHOLE = 0xFFFFFFFF


class BindListener:
    """One set of system events. `make_room` makes an array of `nvmlSystemEventData_v1_t`."""

    def __init__(
        self,
        call: Callable[..., Answer],
        make_room: Callable[[int], Any] | None,
        unix_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._call = call
        self._make_room = make_room
        self._unix_ns = unix_ns
        self._set: Any = None

    def listen(self) -> None:
        """Register; where the driver cannot, nothing is told."""
        if self._make_room is None:
            return
        made = self._call("", "nvmlSystemEventSetCreate", SET)
        if made.ok:
            self._set = made.value
            if not self._call("", "nvmlSystemRegisterEvents", REGISTER, sum(KINDS), made.value).ok:
                self.close()

    def poll(self) -> list[Event]:
        """Give what happened since the last call. Does not wait."""
        if self._set is None or self._make_room is None:
            return []
        room = self._make_room(ROOM)
        told = self._call("", "nvmlSystemEventSetWait", WAIT, self._set, 0, room, ROOM)
        return [
            Event("", KINDS[one["eventType"]], one["gpuId"], WHOLE, WHOLE, self._unix_ns())
            for one in (told.value if told.ok else ())
            if one["eventType"] in KINDS
        ]

    def close(self) -> None:
        """Give the event set back."""
        if self._set is not None:
            self._call("", "nvmlSystemEventSetFree", SET, self._set)
        self._set = None
