"""A source asked in a thread of its own: one that hangs delays neither a sweep nor another source.

Whoever asks gets the last answer. A kubelet may take ten seconds, a file may lie on a file system
that is gone, a name may be looked up over the network.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from otel_gpu.attribution import Claims, Health, Source, View

EVERY_S = 5.0  # for sources that cannot tell that something changed
FIRST_S = 3.0  # at the start nothing is published without owners that gets some a moment later
PATIENCE_S = 0.1  # most answers come within a few milliseconds

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Turn:
    view: View
    done: threading.Event = field(default_factory=threading.Event)


class Patient:
    """Asks `source` at most every `every_s` seconds, or when other processes are on the GPUs."""

    def __init__(
        self,
        source: Source,
        every_s: float = EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.source = source
        self._every_s = every_s
        self._clock = clock
        self.spec: Hashable = None  # what it was made from, for whoever made it
        self._turn: _Turn | None = None
        self._first = True
        self._wake = threading.Event()
        self.closed = False
        self._thread: threading.Thread | None = None
        self._view: View | None = None
        self._asked_s = 0.0
        self._answered_s: float | None = None
        self._claims = Claims()
        self._fault: Health | None = None
        self._told: tuple[bool, str, str] | None = None

    def claims(self, view: View) -> Claims:
        """Give the source's answer; the one before, while it thinks."""
        now_s = self._clock()
        if self._is_due(view, now_s):
            turn = _Turn(view)
            self._view, self._asked_s, self._turn = view, now_s, turn
            self._started()
            self._wake.set()
            turn.done.wait(FIRST_S if self._first else PATIENCE_S)
            self._first = False
        return self._claims

    def health(self) -> Health:
        """Say how the source is, and for how long its answer is being kept."""
        health = self._fault or self.source.health()
        thinks_s = self._clock() - self._asked_s if self._turn else 0.0
        if health.up and thinks_s > 2 * self._every_s:
            late = f"no answer for {thinks_s:.0f} s"
            health = health._replace(up=False, reason="timeout", detail=late)
        if health.up or self._answered_s is None:
            return health
        return health._replace(held_s=self._clock() - self._answered_s)

    def close(self) -> None:
        """End the thread, if it is not stuck, and the source with it."""
        self.closed = True
        self._wake.set()
        if self._thread is None:
            self.source.close()

    def _is_due(self, view: View, now_s: float) -> bool:
        if self._turn or self.closed:
            return False
        return view != self._view or now_s - self._asked_s >= self._every_s

    def _started(self) -> None:
        if self._thread is None:
            name = f"attribution-{self.source.health().name}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self.closed:
                self.source.close()
                return
            turn = self._turn
            if turn:
                self._ask(turn)

    def _ask(self, turn: _Turn) -> None:
        try:
            self._claims, self._fault = self.source.claims(turn.view), None
            if self.source.health().up:
                self._answered_s = self._clock()
        except Exception as error:
            # A fault of ours in one source must not end attribution by the others.
            name = self.source.health().name
            log.exception("owners of GPUs, %s: failed", name)
            self._fault = Health(name, up=False, reason="error", detail=f"{error}")
        self._tell(self._fault or self.source.health())
        self._turn = None
        turn.done.set()

    def _tell(self, health: Health) -> None:
        """Write a line of the log when it is otherwise than it was."""
        before, self._told = self._told, (health.up, health.reason, health.detail)
        if self._told == before or health.dormant:
            return
        if not health.up:
            kept = "" if self._answered_s is None else "; its last answer is kept"
            log.warning("owners of GPUs, %s: %s%s", health.name, health.detail, kept)
        elif health.detail:
            log.warning("owners of GPUs, %s: %s", health.name, health.detail)
        else:
            log.info("owners of GPUs, %s: read", health.name)
