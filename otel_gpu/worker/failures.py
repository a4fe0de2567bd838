"""How a worker fails: it hangs, or it dies. Both say where, and what was answered before."""

from __future__ import annotations

from collections.abc import Sequence

from otel_gpu.model import OtelGpuError
from otel_gpu.worker.page import Flight
from otel_gpu.worker.wire import Answered


class WorkerFailed(OtelGpuError):  # noqa: N818 - the two below say what happened
    """A worker is of no more use: what it was doing, and what it had answered before that.

    `uuid` is "" where `call` is about no GPU, and NVML's index as text for a GPU that had not yet
    told its UUID. `call` is "" when it failed between two calls.
    """

    def __init__(self, text: str, flight: Flight, done: Sequence[Answered]) -> None:
        super().__init__(text)
        self.call = flight.call
        self.uuid = flight.uuid
        self.answered = tuple(done)


class WorkerHung(WorkerFailed):
    """A call did not return in time."""

    def __init__(self, flight: Flight, done: Sequence[Answered]) -> None:
        super().__init__(f"{place(flight) or 'the NVML worker'} did not return", flight, done)


class WorkerDied(WorkerFailed):
    """The process ended: its status (a signal as a negative number), the end of its stderr."""

    def __init__(
        self, status: int | None, tail: str, flight: Flight, done: Sequence[Answered]
    ) -> None:
        doing = f" in {place(flight)}" if flight.call else ""
        text = f"the NVML worker ended with status {status}{doing}: {last_words(tail)}"
        super().__init__(text, flight, done)
        self.status = status
        self.tail = tail


def last_words(tail: str) -> str:
    """Find the line that says why: the last of a traceback, the first of a crash's."""
    lines = [*filter(None, tail.splitlines())] or ["it said nothing"]
    return next((line for line in lines if line.startswith("Fatal Python error")), lines[-1])


def place(flight: Flight) -> str:
    """Name a call and its GPU."""
    return f"{flight.call} on GPU {flight.uuid}" if flight.uuid else flight.call
