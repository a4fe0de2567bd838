"""Takes batches from a queue to their target, oldest first, until each is taken or refused.

It runs in a thread of its own, so that a target that is slow or gone holds up neither the cadence
nor another target.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from threading import Condition, Event, Thread

from otel_gpu.exports import ExportStats
from otel_gpu.pipeline import Record
from otel_gpu.pipeline.batch import Batch
from otel_gpu.pipeline.outcome import Later, Outcome, Refused, Taken
from otel_gpu.pipeline.queue import Entry, Queue
from otel_gpu.pipeline.transport import Transport

FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 30.0
"""Waits between attempts double from the first to this, each shortened by up to half by chance."""

REPLAY = 10
"""How many times faster than they were collected old batches are sent, at least."""

LONGEST_REPLAY_PAUSE_S = 1.0

IDLE_S = 60.0
GRACE_S = 0.2
"""What a transport gets, at the end, to break off what it is doing."""

LEFT_OUT = "encoding"
"""The `error.type` of points that have no form in OTLP."""

REJECTED = "rejected"
"""The `error.type` of points that a target left out of a batch that it took."""

log = logging.getLogger(__name__)


def retry_s(failures: int, first_s: float, after_s: float | None, chance: float) -> float:
    """Give the wait after one more failure in a row; `chance` is 0 to 1.

    Never less than what the server asked for, and up to a fifth more, so that not everybody comes
    at that moment.
    """
    backoff_s = min(first_s * 2.0 ** min(failures, 16), LONGEST_RETRY_S) * (1 - chance / 2)
    return max(backoff_s, (after_s or 0.0) * (1 + chance / 5))


def replay_s(age_s: float, interval_s: float, chance: float) -> float:
    """Give the pause after a batch of that age: none after a new one, a short one in a replay."""
    if age_s <= interval_s:
        return 0.0
    return min(interval_s / REPLAY, LONGEST_REPLAY_PAUSE_S) * (1 - chance / 2)


class Delivery:
    """Sends what is put into a queue.

    `interval_s` is the time between two collections; `target` names the target in the log;
    `first_retry_s` is the wait before a second attempt. `begin` starts it; until then, and after
    `leave`, the queue is somebody else's.
    """

    def __init__(
        self,
        transport: Transport,
        queue: Queue,
        *,
        interval_s: float,
        target: str,
        record: Record,
        first_retry_s: float = FIRST_RETRY_S,
    ) -> None:
        self.failures = 0  # attempts that failed, ever
        self._transport = transport
        self._queue = queue
        self._interval_s = interval_s
        self._target = target
        self._record = record
        self._first_retry_s = first_retry_s
        self._stats = ExportStats()
        self._chance = Random()  # noqa: S311 - so that a fleet does not come back in step; no secret
        self._troubles: dict[str, int] = {}  # by kind, since a batch was last taken whole
        self._in_a_row = 0
        self._hurry = Event()  # no pauses: somebody waits for the end
        self._stopping = Event()
        self._abandoned = Event()
        self._changed = Condition()
        self._thread = Thread(target=self._run, daemon=True, name="otel-gpu-delivery")
        self._owns_queue = False

    def begin(self) -> None:
        """Start to send."""
        self._owns_queue = True
        self._thread.start()

    def leave(self, timeout_s: float) -> None:
        """End, and leave what waits to whoever sends from the same queue next."""
        self._owns_queue = False
        self._end(timeout_s, at_once=True)

    @property
    def is_alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    @property
    def stats(self) -> ExportStats:
        """What became of the points so far, and what waits."""
        backlog = self._queue.state
        return replace(self._stats, inflight=backlog.points, backlog=backlog)

    def put(self, batches: Iterable[Batch], left_out: int = 0) -> None:
        """Queue batches; count points that could not be put into one. Waits for no target."""
        for batch in batches:
            self._queue.put(batch)
        if left_out:
            with self._changed:
                self._count_failed(LEFT_OUT, left_out, "they cannot be encoded")

    def flush(self, failures: int, timeout_s: float) -> bool:
        """Send all that waits, without pauses; whether that was done within the time.

        `failures` is what the attribute was before the batches were put: one more ends the wait.
        """
        self._hurry.set()
        try:
            with self._changed:
                self._changed.wait_for(
                    lambda: self.failures > failures or not self._queue.state.batches, timeout_s
                )
                return self.failures == failures and not self._queue.state.batches
        finally:
            if not self._stopping.is_set():
                self._hurry.clear()

    def stop(self, timeout_s: float) -> None:
        """Send what waits, until something fails or the time is over, and end."""
        if not self._owns_queue:
            self._transport.close()
            return
        self._end(timeout_s, at_once=False)
        self._say_what_is_left()
        self._queue.close()

    def _end(self, timeout_s: float, *, at_once: bool) -> None:
        if at_once:
            self._abandoned.set()
        self._stopping.set()
        self._hurry.set()
        self._queue.wake()
        self._thread.join(max(0.0, timeout_s - GRACE_S))
        self._abandoned.set()
        self._transport.close()
        self._thread.join(min(GRACE_S, timeout_s))

    def _run(self) -> None:
        while not self._abandoned.is_set():
            entry = self._queue.oldest(0.0 if self._stopping.is_set() else IDLE_S)
            if entry is not None:
                outcome, seconds = self._send(entry.batch)
                if self._abandoned.is_set() and not isinstance(outcome, Taken):
                    return  # it was broken off, so what came of it says nothing
                pause_s = self._settle(entry, outcome, seconds)
                if isinstance(outcome, Later) and self._stopping.is_set():
                    return
                self._hurry.wait(pause_s)
            elif self._stopping.is_set():
                return

    def _send(self, batch: Batch) -> tuple[Outcome, float]:
        began_s = time.monotonic()
        try:
            outcome = self._transport.send(batch.body)
        except Exception as error:  # the thread lives on, whatever a library raises
            log.exception("%s: an attempt to send failed unexpectedly", self._target)
            outcome = Later(type(error).__name__, str(error))
        return outcome, time.monotonic() - began_s

    def _settle(self, entry: Entry, outcome: Outcome, seconds: float) -> float:
        """Count, tell and forget; give the seconds until the next attempt."""
        kind = "" if isinstance(outcome, Taken) else outcome.kind
        self._record(
            "otel.sdk.exporter.operation.duration", seconds, (("error.type", kind),) if kind else ()
        )
        with self._changed:
            if isinstance(outcome, Later):
                pause_s = self._postpone(outcome)
            else:
                self._queue.done(entry.ticket)
                age_s = (time.time_ns() - entry.batch.collected_ns) / 1e9
                pause_s = replay_s(age_s, self._interval_s, self._chance.random())
                if isinstance(outcome, Refused):
                    self._refuse(outcome, entry.batch)
                else:
                    self._take(outcome, entry.batch)
            self._changed.notify_all()
        return pause_s

    def _take(self, taken: Taken, batch: Batch) -> None:
        rejected = min(taken.rejected, batch.points)
        if rejected or taken.text:
            said = taken.text or "no reason was given"
            if rejected:
                said = f"{rejected} of {batch.points} points were rejected: {said}"
            self._tell(REJECTED, said)
        elif self._troubles:
            count = sum(self._troubles.values())
            log.info("%s: accepted again, after %d failures", self._target, count)
            self._troubles = {}
        if rejected:
            self._count_failed(REJECTED, rejected, taken.text)
        self._in_a_row = 0
        self._stats = replace(
            self._stats,
            exported=self._stats.exported + batch.points - rejected,
            last_success_ns=time.time_ns(),
        )

    def _refuse(self, refused: Refused, batch: Batch) -> None:
        self._failed_once_more()
        self._tell(refused.kind, f"{batch.points} points were refused for good: {refused.text}")
        self._count_failed(refused.kind, batch.points, refused.text)

    def _postpone(self, later: Later) -> float:
        wait_s = retry_s(self._in_a_row, self._first_retry_s, later.after_s, self._chance.random())
        self._failed_once_more()
        self._tell(later.kind, f"not accepted, and kept to be sent again: {later.text}")
        self._stats = replace(self._stats, last_error=later.text)
        return wait_s

    def _failed_once_more(self) -> None:
        self.failures += 1
        self._in_a_row += 1

    def _count_failed(self, kind: str, points: int, text: str) -> None:
        failed = {**self._stats.failed, kind: self._stats.failed.get(kind, 0) + points}
        self._stats = replace(self._stats, failed=failed, last_error=text)

    def _tell(self, kind: str, text: str) -> None:
        """Log each kind of trouble once, until a batch is taken whole."""
        if kind not in self._troubles:
            log.warning("%s: %s", self._target, text)
        self._troubles[kind] = self._troubles.get(kind, 0) + 1

    def _say_what_is_left(self) -> None:
        left = self._queue.state
        if not left.batches:
            return
        if left.on_disk:
            log.info("%s: %d points wait on disk for the next start", self._target, left.points)
        else:
            log.warning("%s: %d points were not sent, and are lost", self._target, left.points)
