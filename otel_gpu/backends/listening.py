"""The driver's event set: Xids and MIG changes as they come. Never waits, and never fails for long.

Clock changes are not asked for: under load they come ten times a second. Nothing here imports
pynvml; the driver's functions come with the constructor.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping
from typing import Any

from otel_gpu.model import Answer, Event, EventKind

XID = 0x8  # nvml.h, nvmlEventTypeXidCriticalError
MIG = 0x100  # nvml.h, nvmlEventMigConfigChange
KINDS: Mapping[int, EventKind] = {XID: EventKind.XID, MIG: EventKind.MIG}
MOST_A_POLL = 1000  # a storm is read over several sweeps, so that it cannot hold up one


class Listener:
    """One event set for every GPU. Only what happens after `listen` is told."""

    def __init__(
        self, call: Callable[..., Answer], unix_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self._call = call
        self._unix_ns = unix_ns
        self._set: Any = None
        self._uuids: dict[int | None, str] = {}

    def listen(self, handles: Mapping[str, Any]) -> tuple[str, ...]:
        """Register every GPU for what it can tell; give those of whose Xids it does not tell."""
        made = self._call("", "nvmlEventSetCreate")
        if not made.ok:
            return tuple(handles)
        self._set = made.value
        self._uuids = {address(handle): uuid for uuid, handle in handles.items()}
        return tuple(
            uuid for uuid, handle in handles.items() if XID not in self._registered(uuid, handle)
        )

    def poll(self) -> list[Event]:
        """Give what happened since the last call. Does not wait."""
        found: list[Event] = []
        while self._set is not None and len(found) < MOST_A_POLL:
            answer = self._call("", "nvmlEventSetWait_v2", self._set, 0)
            if not answer.ok:  # a time-out: nothing more; or a lost GPU, until the next enumeration
                break
            found += self._told(answer.value)
        return found

    def close(self) -> None:
        """Give the event set back."""
        if self._set is not None:
            self._call("", "nvmlEventSetFree", self._set)
        self._set = None
        self._uuids.clear()

    def _registered(self, uuid: str, handle: Any) -> set[int]:
        offered = self._call(uuid, "nvmlDeviceGetSupportedEventTypes", handle)
        # Each kind by itself: a kind that is refused would take the others with it.
        return {
            kind
            for kind in KINDS
            if offered.ok
            and offered.value & kind
            and self._call(uuid, "nvmlDeviceRegisterEvents", handle, kind, self._set).ok
        }

    def _told(self, data: Any) -> list[Event]:
        kind = KINDS.get(data.eventType)
        uuid = self._uuids.get(address(data.device))
        if kind is None or uuid is None:
            return []
        return [
            Event(
                uuid,
                kind,
                data.eventData,
                data.gpuInstanceId,
                data.computeInstanceId,
                self._unix_ns(),
            )
        ]


def address(handle: Any) -> int | None:
    """Tell handles apart by where they point: pynvml makes a new object for each."""
    return ctypes.cast(handle, ctypes.c_void_p).value
