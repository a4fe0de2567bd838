"""Watches over what happens: feeds both sources of Xids and each snapshot in, and records out."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from threading import Thread

from otel_gpu.events.export import Outlet
from otel_gpu.events.happening import Happening, reported
from otel_gpu.events.kernel_log import KernelLog
from otel_gpu.events.points import Points, code_errors, errors
from otel_gpu.events.status import States, changed
from otel_gpu.events.tally import WAIT_S, Tally, ended, folded
from otel_gpu.model import Event, EventKind, Snapshot

log = logging.getLogger(__name__)


class Watch:
    """Keeps the tally. One thread calls `turn` after each sweep; any thread may read the points.

    `kernel_log` is None where it is not to be read; one that cannot be read is as if it were not.
    """

    def __init__(self, outlet: Outlet, kernel_log: KernelLog | None, *, xid: bool = True) -> None:
        self._outlet = outlet
        self._kernel_log = kernel_log
        self._xid = xid
        self._states: States = {}
        self._tally = Tally(since_ns=time.time_ns())

    def turn(self, told: Iterable[Event], snapshot: Snapshot, now_s: float) -> None:
        """Count what happened since the last turn, and hand on the records that are ready."""
        happenings = self._happenings(told) if self._xid else []
        wait_s = WAIT_S if self._hears_kernel() else 0.0
        self._tally, records = folded(self._tally, happenings, snapshot, now_s, wait_s)
        self._states, changes = changed(self._states, snapshot)
        self._outlet.write([*records, *changes])

    def write_to(self, outlet: Outlet) -> None:
        """Hand records to another outlet from the next turn on. Called between turns."""
        before, self._outlet = self._outlet, outlet
        Thread(target=before.shutdown, name="otel-gpu-events-end", daemon=True).start()

    def listen_to(self, kernel_log: KernelLog | None, *, xid: bool) -> None:
        """Listen to something else from the next turn on; counts go on. Called between turns."""
        if self._kernel_log:
            self._kernel_log.close()
        self._kernel_log, self._xid = kernel_log, xid

    def close(self, snapshot: Snapshot) -> None:
        """Hand on what still waits for more, and end the outlet within 2 s."""
        self._outlet.write(ended(self._tally, snapshot))
        self._outlet.shutdown()
        if self._kernel_log is not None:
            self._kernel_log.close()

    def errors(self, snapshot: Snapshot) -> Points:
        """Give the points of `nvidia.gpu.xid.errors`."""
        return errors(self._tally, snapshot, self._unheard(snapshot)) if self._xid else ()

    def code_errors(self, snapshot: Snapshot) -> Points:
        """Give the points of `nvidia.gpu.xid.code.errors`."""
        return code_errors(self._tally, snapshot, self._unheard(snapshot)) if self._xid else ()

    def _unheard(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Give the GPUs of which neither source can tell: a 0 there would be made up."""
        return () if self._hears_kernel() else snapshot.system.unheard

    def _hears_kernel(self) -> bool:
        return self._kernel_log is not None and self._kernel_log.available()

    def _happenings(self, told: Iterable[Event]) -> list[Happening]:
        of_driver = [
            reported(one.uuid, one.data, one.gpu_instance, one.compute_instance, one.time_ns)
            for one in told
            if one.kind == EventKind.XID
        ]
        return of_driver + (self._kernel_log.poll() if self._kernel_log else [])


def kernel_log(setting: object) -> KernelLog | None:
    """Open the kernel's log as configured (`events.kernel_log`: auto, on, off)."""
    if setting in {"off", False}:
        return None
    opened = KernelLog()
    if not opened.available():
        level = logging.DEBUG if setting == "auto" else logging.WARNING
        log.log(level, "the kernel log is not read: %s", opened.reason)
    return opened
