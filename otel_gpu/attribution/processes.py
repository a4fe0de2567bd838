"""Where the processes on a GPU run, and whose they are, as /proc says without any privilege."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from otel_gpu.attribution import View
from otel_gpu.attribution.cgroups import Place, place

MOST_BYTES = 64 << 10


class Processes:
    """Reads under `proc`, which must be the one of the PID namespace of the host."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc

    def places(self, view: View) -> Iterator[tuple[tuple[str, int], Place]]:
        """Give the place of each process on each GPU; one that has ended is left out."""
        seen: dict[int, Place | None] = {}
        for uuid, pids in view.pids.items():
            for pid in pids:
                if pid not in seen:
                    seen[pid] = self.place(pid)
                if (found := seen[pid]) is not None:
                    yield (uuid, pid), found

    def place(self, pid: int) -> Place | None:
        """Say where a process runs; None when it has ended or is not to be seen."""
        try:
            with (self._proc / str(pid) / "cgroup").open("rb") as file:
                return place(file.read(MOST_BYTES).decode("utf-8", "replace"))
        except OSError:
            return None

    def user(self, pid: int) -> int | None:
        """Give the user id that a process runs as."""
        try:
            return (self._proc / str(pid)).stat().st_uid
        except OSError:
            return None
