"""A backend in this very process, seen as the sampler sees a worker.

For embedding in an application, for a single sweep, and for tests: a call that hangs here hangs the
caller. The agent uses `worker/` instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from otel_gpu.model import Answer, Backend, BackendError, Event, Query, System


@dataclass(frozen=True, slots=True)
class Answered:
    """One GPU's answers, in the order of its questions (Unix ns, monotonic s)."""

    uuid: str
    time_ns: int
    read_s: float
    answers: list[Answer]


class Direct:
    """Opens the backend when first asked, and tries again each time that it is asked while shut."""

    hung: tuple[tuple[str, str, float], ...] = ()

    def __init__(
        self,
        backend: Backend,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        unix_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._backend = backend
        self._monotonic = monotonic
        self._unix_ns = unix_ns
        self._system: System | None = None
        self.trouble: BackendError | None = None
        self.generation = 0

    def system(self, _now: float) -> System | None:
        """Give the enumerated machine, or None with `trouble` saying why."""
        if self._system is None:
            try:
                self._system = self._backend.open()
            except BackendError as error:
                self.trouble = error
            else:
                self.trouble = None
                self.generation += 1
        return self._system

    def reopen(self) -> None:
        """Enumerate anew at the next question."""
        self._system = None

    def ask(self, questions: Sequence[tuple[str, Sequence[Query]]]) -> list[Answered]:
        """Ask one GPU after the other."""
        return [
            Answered(uuid, self._unix_ns(), self._monotonic(), self._backend.ask(uuid, queries))
            for uuid, queries in questions
        ]

    def events(self) -> list[Event]:
        """Take what the driver told since the last call."""
        return [] if self._system is None else self._backend.events()

    def close(self) -> None:
        """Release the driver."""
        self._backend.close()
        self._system = None
