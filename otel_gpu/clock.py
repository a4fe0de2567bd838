"""Unix time for timestamps, which never goes back: a time series database refuses what does.

When the machine's clock is set back, this one goes on from where it was, a tenth slower, until the
two are one again; rates that a backend takes meanwhile are a tenth too high. When the machine's
clock is set forward, this one follows at once. Intervals are measured with the monotonic clock and
know nothing of all that.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Lock

SLOWED = 0.9
TOLD_NS = 1_000_000_000
"""A step back of less is not worth a line: time synchronisation makes them."""

log = logging.getLogger(__name__)


class SteadyClock:
    """Gives Unix nanoseconds. Any thread may ask."""

    def __init__(
        self,
        unix_ns: Callable[[], int] = time.time_ns,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._unix_ns = unix_ns
        self._monotonic_ns = monotonic_ns
        self._lock = Lock()
        self._asked_ns = monotonic_ns()
        self._given_ns = unix_ns()
        self._told = False

    def unix_ns(self) -> int:
        """Give the time, which is never less than what was given before."""
        with self._lock:
            asked_ns, real_ns = self._monotonic_ns(), self._unix_ns()
            slowed_ns = self._given_ns + int((asked_ns - self._asked_ns) * SLOWED)
            self._asked_ns, self._given_ns = asked_ns, max(real_ns, slowed_ns)
            self._tell(self._given_ns - real_ns)
            return self._given_ns

    def _tell(self, ahead_ns: int) -> None:
        """Log once that the clock was set back, and once that the two are one again."""
        if ahead_ns >= TOLD_NS and not self._told:
            log.warning(
                "the clock was set back by %.0f s: timestamps go on from where they were, a tenth "
                "slower, until they meet it in %.0f s. A restart takes the new time at once",
                ahead_ns / 1e9,
                ahead_ns / 1e9 / (1 - SLOWED),
            )
            self._told = True
        elif ahead_ns == 0 and self._told:
            log.info("timestamps follow the clock again")
            self._told = False


steady = SteadyClock()
"""The one of this process."""
