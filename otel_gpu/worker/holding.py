"""Which of the driver's device files processes have open (proc_pid_fd(5))."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

DEVICES = "/dev/nvidia"


def held(pids: Iterable[int], proc: Path = Path("/proc")) -> dict[int, list[str]]:
    """Give the open device files by process id; who has none, or is gone, is not in it."""
    found = {pid: sorted(set(_devices(proc / f"{pid}" / "fd"))) for pid in pids}
    return {pid: files for pid, files in found.items() if files}


def _devices(handles: Path) -> Iterable[str]:
    try:
        links = list(handles.iterdir())
    except OSError:  # it is gone, or its handles are somebody else's business
        return
    for link in links:
        try:
            target = str(link.readlink())
        except OSError:
            continue  # closed meanwhile
        if target.startswith(DEVICES):
            yield target
