"""Names for the pids that NVML lists, and whether its lists can be trusted here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HOST_PID_NAMESPACE = 0xEFFFFFFC  # include/linux/proc_ns.h, PROC_PID_INIT_INO


def host_pids(namespace: Path = Path("/proc/self/ns/pid")) -> bool:
    """Whether this process is in the host's PID namespace: elsewhere NVML's lists are empty."""
    try:
        return namespace.stat().st_ino == HOST_PID_NAMESPACE
    except OSError:
        return False


def named(processes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Put the name of its executable beside each pid; nothing else of a process is read."""
    return [{**process, "name": executable(process["pid"])} for process in processes]


def executable(pid: int) -> str:
    """Give the file name of what a process runs, or its own short name, or "" when it is gone.

    Source: proc(5): /proc/PID/exe, which others may not read, else /proc/PID/comm.
    """
    try:
        name = Path(f"/proc/{pid}/exe").readlink().name.removesuffix(" (deleted)")
        return os.fsencode(name).decode(errors="replace")  # file names need not be UTF-8
    except OSError:
        pass
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
