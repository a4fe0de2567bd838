"""What waits to be sent to one target: bounded, oldest first, in memory or on disk."""

from __future__ import annotations

import logging
from collections import OrderedDict
from enum import StrEnum
from threading import Condition
from typing import NamedTuple, cast

from otel_gpu.exports import Backlog
from otel_gpu.pipeline.batch import Batch
from otel_gpu.pipeline.record import TornError
from otel_gpu.pipeline.spool import Filed, Spool

UNREADABLE_S = 1.0
"""The pause after a batch could not be read: a disk, or a lack of file handles, may get better."""

log = logging.getLogger(__name__)


class Dropped(StrEnum):
    """Why points left the queue unsent: the `otel_gpu.reason` of `otel_gpu.queue.dropped`."""

    FULL = "full"
    TOO_LARGE = "too_large"
    TORN = "torn"


class Entry(NamedTuple):
    """A batch, and what to call it by when it is done."""

    ticket: int
    batch: Batch


class _Place(NamedTuple):
    """Where a batch is: in memory, or in a file."""

    kept: Batch | Filed
    size_bytes: int

    @property
    def points(self) -> int:
        return self.kept.points


class Queue:
    """Takes batches from any thread; one other thread takes them out, oldest first.

    `max_bytes` bounds what is kept, in memory and on disk alike. `state` is what waits, at one
    moment: to be read without a lock, because a disk may hang.
    """

    def __init__(self, max_bytes: int, spool: Spool | None = None) -> None:
        self._max_bytes = max_bytes
        self._spool = spool
        self._places: OrderedDict[int, _Place] = OrderedDict()
        self._next = 0
        self._size_bytes = 0
        self._points = 0
        self._dropped: dict[str, int] = {}
        self._disk_fails = False
        self._woken = False
        self._changed = Condition()
        for filed in spool.left if spool else ():
            self._add(_Place(filed, filed.size_bytes))
        self.state = self._state()

    def resize(self, max_bytes: int) -> None:
        """Bound it anew, at the cost of the oldest ones."""
        with self._changed:
            self._max_bytes = max_bytes
            self._shrink()
            self.state = self._state()

    def put(self, batch: Batch) -> None:
        """Keep a batch, at the cost of the oldest ones. Never raises, and waits for no target."""
        with self._changed:
            if len(batch.body) > self._max_bytes:
                self._drop(Dropped.TOO_LARGE, batch.points)
            else:
                self._add(self._placed(batch))
            self.state = self._state()
            self._changed.notify_all()

    def oldest(self, timeout_s: float) -> Entry | None:
        """Give the oldest batch, which stays until it is `done`; wait for one if there is none.

        None when the time is over, after `wake`, and while the disk cannot be read.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._places or self._woken, timeout_s)
            self._woken = False
            try:
                return self._first()
            except OSError as error:
                self._tell_disk(error)
                self._changed.wait(min(timeout_s, UNREADABLE_S))
                return None
            finally:
                self.state = self._state()

    def done(self, ticket: int) -> None:
        """Forget a batch, which may have been dropped in the meantime."""
        with self._changed:
            self._remove(ticket)
            self.state = self._state()

    def wake(self) -> None:
        """Let whoever waits for a batch go on without."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def close(self) -> None:
        """Leave what is on disk to the next start."""
        if self._spool:
            self._spool.close()

    def _state(self) -> Backlog:
        oldest = next(iter(self._places.values()), None)
        return Backlog(
            size_bytes=self._size_bytes,
            batches=len(self._places),
            points=self._points,
            oldest_ns=oldest.kept.collected_ns if oldest else None,
            dropped=dict(self._dropped),
            on_disk=self._spool is not None and not self._disk_fails,
        )

    def _placed(self, batch: Batch) -> _Place:
        """Put a batch on disk; or keep it in memory, where there is none or it fails."""
        if self._spool:
            try:
                filed = self._spool.write(batch)
            except OSError as error:
                self._tell_disk(error)
            else:
                self._tell_disk(None)
                return _Place(filed, filed.size_bytes)
        return _Place(batch, len(batch.body))

    def _first(self) -> Entry | None:
        """Give the first batch that is whole; drop those before it. OSError: it cannot be read."""
        while self._places:
            ticket, place = next(iter(self._places.items()))
            try:
                return Entry(ticket, self._read(place.kept))
            except TornError as error:
                log.warning("a batch of the queue is skipped: %s", error)
                self._drop(Dropped.TORN, self._remove(ticket))
        return None

    def _read(self, kept: Batch | Filed) -> Batch:
        if isinstance(kept, Batch) or self._spool is None:
            return cast("Batch", kept)
        return self._spool.read(kept)

    def _add(self, place: _Place) -> None:
        self._places[self._next] = place
        self._next += 1
        self._size_bytes += place.size_bytes
        self._points += place.points
        self._shrink()

    def _shrink(self) -> None:
        while self._size_bytes > self._max_bytes and len(self._places) > 1:
            self._drop(Dropped.FULL, self._remove(next(iter(self._places))))

    def _remove(self, ticket: int) -> int:
        """Forget a batch, if it is there; give its points."""
        place = self._places.pop(ticket, None)
        if place is None:
            return 0
        self._size_bytes -= place.size_bytes
        self._points -= place.points
        if self._spool and isinstance(place.kept, Filed):
            self._spool.remove(place.kept)
        return place.points

    def _drop(self, reason: Dropped, points: int) -> None:
        self._dropped[reason] = self._dropped.get(reason, 0) + points

    def _tell_disk(self, error: OSError | None) -> None:
        """Log once that the disk fails, and once that it works again."""
        failed, self._disk_fails = self._disk_fails, error is not None
        where = self._spool.directory if self._spool else ""
        if error and not failed:
            log.warning(
                "queue directory %s: %s; new batches are kept in memory until it works again",
                where,
                error.strerror,
            )
        elif failed and not error:
            log.info("queue directory %s: works again", where)
