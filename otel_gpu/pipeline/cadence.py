"""A reader that keeps its rhythm: the same phase on every tick, whatever a collector does.

The official periodic reader waits one interval after each export, so a slow collector stretches the
period, and a fleet that was started together pushes together.
"""

from __future__ import annotations

import hashlib
import logging
import time
from abc import abstractmethod
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import Any

from opentelemetry.sdk.metrics.export import MetricReader, MetricsData

from otel_gpu.exports import ExportStats

STUCK_S = 60.0
"""How long after its tick a collection may be before its loop counts as stuck."""

log = logging.getLogger(__name__)

LAST_EXPORT_S = 1.5
"""How long a shutdown waits for the last export: a dead collector must not hold up the agent."""


def phase_s(node: str, interval_s: float) -> float:
    """Give a node's own offset into the interval: always the same, and spread over a fleet."""
    digest = hashlib.blake2b(node.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64 * interval_s


def until_tick_s(unix_s: float, interval_s: float, phase: float) -> float:
    """Give the seconds until the clock is `phase` into an interval: 0 to `interval_s`."""
    return (phase - unix_s) % interval_s


def next_tick_s(tick_s: float, now_s: float, interval_s: float) -> tuple[float, int]:
    """Give the next tick on the grid of this one that is still to come, and how many are past."""
    missed = max(0, int((now_s - tick_s) // interval_s))
    return tick_s + (missed + 1) * interval_s, missed


class _Flush:
    """A request to collect now; `collected` tells, once `done` is set, whether that worked."""

    def __init__(self) -> None:
        self.done = Event()
        self.collected = False


class CadenceReader(MetricReader):
    """Collects on every tick of its node, in a thread of its own.

    `target` names it in the log. Nothing that a collection raises ends the thread. It starts with
    `begin` and passes over the ticks before a MeterProvider knows it.
    """

    def __init__(self, *, interval_s: float, node: str, target: str, **preferred: Any) -> None:
        super().__init__(**preferred)
        self.target = target
        self.interval_s = interval_s
        self.missed = 0  # ticks that came while a collection or an export was under way
        self._phase_s = phase_s(node, interval_s)
        self._requests: SimpleQueue[_Flush | None] = SimpleQueue()  # None: collect once more, end
        self._stopping = Lock()
        self._thread = Thread(target=self._run, daemon=True, name="otel-gpu-push")
        self._ticked_s = time.monotonic()

    @property
    @abstractmethod
    def stats(self) -> ExportStats:
        """What became of the points so far."""

    @abstractmethod
    def _receive_metrics(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **_: Any
    ) -> None:
        """Take a collection; what is raised fails it."""

    @abstractmethod
    def _end(self, timeout_s: float) -> None:
        """Stop, within the time: the last collection was made, or took too long."""

    def ailment(self) -> str | None:
        """Say that the cadence does not move."""
        quiet_s = time.monotonic() - self._ticked_s
        if not self._thread.is_alive():
            return "the thread that collects has ended"
        if quiet_s > self.interval_s + max(STUCK_S, 3 * self.interval_s):
            return f"nothing was collected for {quiet_s:.0f} s"
        return None

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Collect now; whether that was done within the time."""
        flush = _Flush()
        self._requests.put(flush)
        return flush.done.wait(timeout_millis / 1e3) and flush.collected

    def shutdown(self, timeout_millis: float = 30_000, **_: Any) -> None:
        """Collect once more and stop; with a collector that does not answer, in under 2 s."""
        if not self._stopping.acquire(blocking=False):
            return
        limit_s = min(LAST_EXPORT_S, timeout_millis / 1e3)
        deadline_s = time.monotonic() + limit_s
        self._requests.put(None)
        self._thread.join(limit_s)
        self._end(max(0.0, deadline_s - time.monotonic()))

    def begin(self) -> None:
        """Start to tick: the last act of a constructor."""
        self._thread.start()

    def _run(self) -> None:
        """Tick until a None comes; the grid starts from the wall clock and goes on without it."""
        tick_s = time.monotonic() + until_tick_s(time.time(), self.interval_s, self._phase_s)
        while True:
            try:
                request = self._requests.get(timeout=max(0.0, tick_s - time.monotonic()))
            except Empty:
                self._collect_now()
                self._ticked_s = time.monotonic()
                tick_s, missed = next_tick_s(tick_s, time.monotonic(), self.interval_s)
                self.missed += missed
                continue
            collected = self._collect_now()
            if request is None:
                return
            request.collected = collected
            request.done.set()

    def _collect_now(self) -> bool:
        """Collect; whether nothing failed. Never raises: the thread lives on it."""
        if self._collect is None:  # no MeterProvider has registered this reader (yet)
            return False
        try:
            self.collect(timeout_millis=self.interval_s * 1e3)
        except Exception:  # a callback or the SDK; the next collection must still come
            log.exception("%s: the collection failed", self.target)
            return False
        return True
