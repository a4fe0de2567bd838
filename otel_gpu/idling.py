"""Lets the GPUs go while nobody uses them, so that they can sleep (`gpus.release_idle`).

While they are let go nothing may be asked of them. That somebody else has come is seen by the use
count of the kernel module (each open device file counts); where the kernel does not tell it, the
GPUs are looked at again after the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from otel_gpu.model import Snapshot

ACTIVE = "nvidia.gpu.process.active"
USES = Path("/sys/module/nvidia/refcnt")
SETTLED_S = 3.0
"""After our own device files are closed, until what is counted is other people's."""

Advice = Literal["release", "resume"] | None


def uses(path: Path = USES) -> int | None:
    """Read how often the kernel module is in use; None where that is not told."""
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def processes(snapshot: Snapshot) -> int | None:
    """Count the processes on all GPUs; None when that is not known of one of them."""
    counts = {
        reading.device: sum(int(point.value) for point in reading.points)
        for reading in snapshot.readings
        if reading.metric.name == ACTIVE
    }
    return sum(counts.values()) if snapshot.up and snapshot.up.keys() <= counts.keys() else None


class Idling:
    """Advises after each sweep; `after_s` is how long nobody may have used a GPU."""

    def __init__(self, after_s: float, count: Callable[[], int | None] = uses) -> None:
        self._after_s = after_s
        self._count = count
        self._busy_s: float | None = None  # when a process was last seen, or may have been there
        self._released_s: float | None = None
        self._others: int | None = None

    def advise(self, running: int | None, now_s: float) -> Advice:
        """Say what is to be done. `running` is None while it is not known, also when released."""
        if running is not None and self._released_s is not None:
            self._released_s, self._busy_s = None, now_s  # somebody had them taken back
        if self._released_s is not None:
            return self._look(self._released_s, now_s)
        if running != 0 or self._busy_s is None:
            self._busy_s = now_s
        if now_s - self._busy_s < self._after_s:
            return None
        self._released_s, self._others = now_s, None
        return "release"

    def _look(self, released_s: float, now_s: float) -> Advice:
        count = self._count()
        if count is None:
            came = now_s - released_s >= self._after_s
        elif self._others is None:
            came = False
            if now_s - released_s >= SETTLED_S:
                self._others = count
        else:
            came = count > self._others
            self._others = min(count, self._others)
        if not came:
            return None
        self._released_s, self._busy_s = None, now_s
        return "resume"
