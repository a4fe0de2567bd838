"""What a process uses, as /proc tells it: of the agent itself, and of its worker."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class Usage(NamedTuple):
    """Processor time of all threads, user and system, in seconds; resident memory in bytes."""

    cpu_s: float
    rss_bytes: int


def usage(pid: int) -> Usage | None:
    """Read what a process uses; None when it is gone.

    Source: proc(5): fields 14 and 15 of /proc/PID/stat, field 2 of /proc/PID/statm.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        statm = Path(f"/proc/{pid}/statm").read_text(encoding="ascii")
    except OSError:
        return None
    # The second field is the program's name in parentheses, and may hold anything, also those.
    user, system = stat.rpartition(")")[2].split()[11:13]
    cpu_s = (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return Usage(cpu_s, int(statm.split()[1]) * os.sysconf("SC_PAGE_SIZE"))
