"""A backend in this very process, seen as the sampler sees a worker.

For embedding in an application, for a single sweep, and for tests: a call that hangs here hangs the
caller. The agent uses `worker/` instead.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from otel_gpu.model import Answer, Backend, BackendError, Code, Event, Query, System


@dataclass(frozen=True, slots=True)
class Answered:
    """One GPU's answers, in the order of its questions, and when it was asked (monotonic)."""

    uuid: str
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
    ) -> None:
        self._backend = backend
        self._monotonic = monotonic
        self._system: System | None = None
        self._closed_until_s = -math.inf
        self.trouble: BackendError | None = None
        self.generation = 0

    def system(self, now: float) -> System | None:
        """Give the enumerated machine, or None with `trouble` saying why."""
        if self._system is None and now >= self._closed_until_s:
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

    def release(self, why: str, for_s: float) -> None:
        """Let every device go, for so long; `why` is what trouble says in the meantime."""
        self.close()
        self.trouble = BackendError(Code.UNINITIALIZED, why)
        self._closed_until_s = self._monotonic() + for_s

    def ask(self, questions: Sequence[tuple[str, Sequence[Query]]]) -> list[Answered]:
        """Ask one GPU after the other."""
        return [
            Answered(uuid, self._monotonic(), self._backend.ask(uuid, queries))
            for uuid, queries in questions
        ]

    def events(self) -> list[Event]:
        """Take what the driver told since the last call."""
        return [] if self._system is None else self._backend.events()

    def close(self) -> None:
        """Release the driver."""
        self._backend.close()
        self._system = None
