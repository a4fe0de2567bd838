"""Holds a batch of log records until its endpoint takes it: an outage must not cost an Xid.

The official batch processor drops what its exporter gives up on, after 10 s. It calls us in a
thread of its own, so we may keep that thread waiting, while its bounded queue takes what comes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import Any, Protocol

from otel_gpu.pipeline.failure import PASSING_CODES, PASSING_STATUSES, ExportError

FIRST_S = 1.0
LONGEST_S = 30.0

PASSING = PASSING_STATUSES | PASSING_CODES | {"RESOURCE_EXHAUSTED"}
"""With the last one the official exporter does not tell whether it may pass: so it is tried."""

Batch = Sequence[Any]
"""Records as the SDK hands them on."""

log = logging.getLogger(__name__)


class Target(Protocol):
    """An endpoint."""

    name: str

    def send(self, batch: Batch) -> ExportError | None:
        """Send once; give why that failed."""

    def close(self) -> None:
        """Break off what is under way."""


@dataclass(frozen=True, slots=True)
class DeliveryStats:
    """What became of the records of one target: taken, and given up, with the last reason."""

    delivered: int = 0
    lost: int = 0
    last_error: str = ""


class Delivery:
    """What the batch processor takes for an exporter.

    `fallback` is given each batch that was not taken at the first attempt, so that its records are
    seen somewhere at once. `first_s` is the wait before the second; it doubles from there.
    """

    def __init__(
        self, target: Target, fallback: Callable[[Batch], None], first_s: float = FIRST_S
    ) -> None:
        self.stats = DeliveryStats()
        self._first_s = first_s
        self._target = target
        self._fallback = fallback
        self._stopping = Event()
        self._failing = False

    def export(self, batch: Batch) -> None:
        """Send until it is taken, refused for good, or `stop` is called."""
        failure = self._target.send(batch)
        if failure is not None:
            self._report(failure)
            self._fallback(batch)
        wait_s = self._first_s
        while failure and passes(failure.kind) and not self._stopping.wait(wait_s):
            failure = self._target.send(batch)
            wait_s = min(2 * wait_s, LONGEST_S)
        self._settle(len(batch), failure)

    def stop(self) -> None:
        """Make each batch have one attempt only from now on."""
        self._stopping.set()

    def shutdown(self) -> None:
        """Stop, and break off what is under way."""
        self.stop()
        self._target.close()

    def force_flush(self, timeout_millis: float = 0) -> bool:
        """Hold nothing back: there is nothing that `export` has not sent."""
        del timeout_millis
        return True

    def _report(self, failure: ExportError) -> None:
        self.stats = replace(self.stats, last_error=str(failure))
        if not self._failing:
            log.warning("%s: log records are not accepted: %s", self._target.name, failure)
        self._failing = True

    def _settle(self, records: int, failure: ExportError | None) -> None:
        if failure is not None:
            self.stats = replace(
                self.stats, lost=self.stats.lost + records, last_error=str(failure)
            )
            return
        if self._failing:
            log.info("%s: log records are accepted again", self._target.name)
        self._failing = False
        self.stats = replace(self.stats, delivered=self.stats.delivered + records)


def passes(kind: str) -> bool:
    """Whether a failure may pass by itself: no connection, or a status that says so.

    A kind is an HTTP status, a gRPC code, or, without an answer, the name of an exception.
    """
    is_status = kind.isdecimal() or kind.isupper()
    return kind in PASSING or not is_status
