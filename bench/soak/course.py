"""One run: its clock, its end, what is counted, and threads that do not fail unseen."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Thread

from bench.soak.tally import Tally
from bench.soak.windows import Timeline


class Course:
    """What everything outside the agent shares. Seconds count from `start_s`, monotonic."""

    def __init__(self, seconds: float, seed: int) -> None:
        self.timeline = Timeline(seconds)
        self.seed = seed
        self.tally = Tally()
        self.start_s = time.monotonic()
        self._over = Event()
        self._threads: list[Thread] = []

    def now_s(self) -> float:
        """Give the second of the run."""
        return time.monotonic() - self.start_s

    def calm(self) -> bool:
        """Whether nothing may be stirred now."""
        return self.timeline.calm(self.now_s())

    def every(self, seconds: float, what: str, do: Callable[[], None]) -> None:
        """Do something again and again until the end, in a thread; an error of it is a failure."""

        def again() -> None:
            while not self._over.wait(seconds):
                try:
                    do()
                except Exception as error:  # noqa: BLE001 - whatever it was, the run says it
                    self.fail(f"{what}: {type(error).__name__}: {error}")

        thread = Thread(target=again, name=what, daemon=True)
        self._threads.append(thread)
        thread.start()

    def fail(self, what: str) -> None:
        """Note what should not have happened, unless the run is over."""
        if not self._over.is_set():
            self.tally.fail(what, self.now_s())

    def end(self, patience_s: float = 15.0) -> None:
        """End all threads."""
        self._over.set()
        for thread in self._threads:
            thread.join(patience_s)
