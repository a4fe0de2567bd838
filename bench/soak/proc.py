"""What /proc tells of a process: memory, file handles, threads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple


class Sample(NamedTuple):
    """One look at a process. `now_s` is the second of the run; memory is in MB (2**20 bytes).

    `pss_mb` is None where it was not read: the kernel walks through all pages for it.
    """

    now_s: float
    pid: int
    rss_mb: float
    anonymous_mb: float
    pss_mb: float | None
    handles: int
    threads: int


def sample(pid: int, now_s: float, *, pss: bool) -> Sample | None:
    """Look at a process; None when it is gone, or is a zombie.

    Source: proc(5): /proc/PID/status (VmRSS, RssAnon, Threads), smaps_rollup, fd.
    """
    try:
        words = table(Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace"))
        handles = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
        rollup = Path(f"/proc/{pid}/smaps_rollup")
        shared = table(rollup.read_text(encoding="ascii")).get("Pss") if pss else None
    except OSError:
        return None
    if "VmRSS" not in words:
        return None
    mega = 1024
    return Sample(
        now_s,
        pid,
        words["VmRSS"] / mega,
        words["RssAnon"] / mega,
        None if shared is None else shared / mega,
        handles,
        words["Threads"],
    )


def table(text: str) -> dict[str, int]:
    """Read the lines that are a word and a number; sizes are in kB."""
    return {
        word: int(number) for word, number in re.findall(r"^(\w+):\s+(\d+)", text, re.MULTILINE)
    }


def children(pid: int) -> list[int]:
    """Give the processes that a process started and that are there; none when it is gone."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        texts = [(thread / "children").read_text(encoding="ascii") for thread in threads]
    except OSError:
        return []
    return sorted(int(child) for text in texts for child in text.split())
