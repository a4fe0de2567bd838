"""Several slow things at once, within one time limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Thread

Task = Callable[[float], object]
"""Something to do, given the milliseconds that are left for it."""


class _Run:
    """One task in a thread of its own; `trouble` is what to say of it."""

    def __init__(self, task: Task, timeout_millis: float) -> None:
        self.trouble = "did not end in time"
        self._task = task
        self._thread = Thread(
            target=self._run, args=(timeout_millis,), daemon=True, name="otel-gpu-bounded"
        )

    def begin(self, deadline_s: float) -> None:
        try:
            self._thread.start()
        except RuntimeError:  # Python starts no thread once the interpreter exits: one by one then
            self._run(max(0.0, deadline_s - time.monotonic()) * 1e3)

    def end(self, deadline_s: float) -> None:
        if self._thread.ident is not None:
            self._thread.join(max(0.0, deadline_s - time.monotonic()))

    def _run(self, timeout_millis: float) -> None:
        try:
            self.trouble = "reported failure" if self._task(timeout_millis) is False else ""
        except Exception as error:  # noqa: BLE001 - foreign code; the caller is told
            self.trouble = repr(error)


def run_all(tasks: Sequence[Task], timeout_millis: float) -> list[str]:
    """Run every task at the same time, and return when all have ended or the time is over.

    Gives for each task "" or what went wrong; one that returns False failed. A task that did not
    end in time goes on in a daemon thread, which does not keep the process.
    """
    deadline_s = time.monotonic() + timeout_millis / 1e3
    runs = [_Run(task, timeout_millis) for task in tasks]
    for run in runs:
        run.begin(deadline_s)
    for run in runs:
        run.end(deadline_s)
    return [run.trouble for run in runs]
