"""Looks at the agent and at its worker every second."""

from __future__ import annotations

import signal
from pathlib import Path
from subprocess import Popen

from bench.soak.course import Course
from bench.soak.proc import Sample, children, sample
from bench.soak.windows import SETTLE_S

PSS_EVERY = 5  # looks: the kernel walks through all pages for it


class Watch:
    """Keeps the samples. `blocks` has the fewest of Python's blocks that were in use, by calm.

    `counts` is the file in which the agent counts them, and `trace` tells whether it traces; see
    `launch` for both.
    """

    def __init__(self, process: Popen[bytes], course: Course, counts: Path, *, trace: bool) -> None:
        self._process, self._course, self._counts = process, course, counts
        self._trace = trace
        self._was_calm = False
        self.agent: list[Sample] = []
        self.workers: list[Sample] = []
        self.blocks: list[int] = []

    @property
    def ended(self) -> bool:
        """Whether the agent is gone."""
        return self._process.poll() is not None

    def look(self) -> None:
        """Take a sample of each process; in a calm, have the agent count."""
        now_s, pid = self._course.now_s(), self._process.pid
        for child in children(pid):
            if found := sample(child, now_s, pss=False):
                self.workers.append(found)
        if found := sample(pid, now_s, pss=len(self.agent) % PSS_EVERY == 0):
            self.agent.append(found)
        timeline = self._course.timeline
        if timeline.calm(now_s) and timeline.calm(now_s - SETTLE_S):
            self._process.send_signal(signal.SIGUSR2)
        calm = timeline.calm(now_s)
        if self._was_calm and not calm:
            self.calmed()
        self._was_calm = calm

    def calmed(self) -> None:
        """Take what was counted in a calm, at its end."""
        if self._counts.exists():
            self.blocks.append(min(map(int, self._counts.read_text(encoding="ascii").split())))
            self._counts.unlink()
        if self._trace and not self.ended:
            self._process.send_signal(signal.SIGUSR1)
