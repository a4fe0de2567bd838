"""So many lines of one cause are logged in a minute; the rest is counted, and told of once.

A fault that repeats must not fill a disk, nor hide what else is said. A cause is a place that logs:
its logger, level and unformatted text. A text that is nothing but placeholders says no place, so
there the line itself is the cause.
"""

from __future__ import annotations

import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from threading import RLock
from typing import NamedTuple

BURST = 5
"""Lines of one cause that are written in a minute."""

MINUTE_S = 60.0
CAUSES = 256
"""Causes that are told apart in one minute. Those beyond share a burst for each level."""

TEXT = 200
"""Characters that are kept of a line, as the name of its cause."""

WORDS = re.compile(r"%(?:\(\w+\))?[-#0-9+ .*]*[a-zA-Z]|\W")
"""What is no word of a text: placeholders, and all between words."""


class Cause(NamedTuple):
    """What tells the lines of one place from all others."""

    logger: str
    level: int
    text: str


class _Minute:
    """The lines of a cause since its first one."""

    __slots__ = ("began_s", "example", "lines")

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self.lines = 0
        self.example = ""

    @property
    def suppressed(self) -> int:
        return max(0, self.lines - BURST)


class LineBudget(logging.Filter):
    """Stands on a handler, which writes what the filter has to say itself.

    What was suppressed is told with the first line, of any cause, after the minute. A critical line
    is never suppressed: it is the last one. Nothing is kept of a cause for longer than its minute
    and the silence after it.
    """

    def __init__(
        self,
        handler: logging.Handler,
        *,
        suppressed: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self.suppressed = suppressed
        self._handler = handler
        self._clock = clock
        self._lock = RLock()  # a signal's handler may log in the middle of a line
        self._minutes: OrderedDict[Cause, _Minute] = OrderedDict()  # the oldest first

    def __len__(self) -> int:
        return len(self._minutes)

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether a line is written."""
        with self._lock:
            now_s = self._clock()
            over = self._over(now_s)
            written = record.levelno >= logging.CRITICAL or self._is_within(record, now_s)
        for cause, minute in over:
            self._tell(cause, minute)
        return written

    def _over(self, now_s: float) -> list[tuple[Cause, _Minute]]:
        """Forget the causes whose minute is over; give those that have something left to tell."""
        over = []
        while self._minutes:
            cause = next(iter(self._minutes))
            if now_s - self._minutes[cause].began_s < MINUTE_S:
                break
            minute = self._minutes.pop(cause)
            if minute.suppressed:
                over.append((cause, minute))
        return over

    def _is_within(self, record: logging.LogRecord, now_s: float) -> bool:
        cause = Cause(record.name, record.levelno, _text(record))
        if cause not in self._minutes and len(self._minutes) >= CAUSES:
            cause = Cause(__name__, record.levelno // 10 * 10, "")
        minute = self._minutes.get(cause)
        if minute is None:
            minute = self._minutes[cause] = _Minute(now_s)
        minute.lines += 1
        if not minute.suppressed:
            return True
        self.suppressed += 1
        if not minute.example and cause.text:
            minute.example = _line(record)
        return False

    def _tell(self, cause: Cause, minute: _Minute) -> None:
        """Write a line past this filter."""
        like = f"lines like this within a minute: {minute.example}"
        text = f"... {minute.suppressed} more {like if cause.text else 'lines of other causes'}"
        line = {"name": cause.logger, "levelno": cause.level, "msg": text}
        record = logging.makeLogRecord({**line, "levelname": logging.getLevelName(cause.level)})
        self._handler.acquire()
        try:
            self._handler.emit(record)
        finally:
            self._handler.release()


def _text(record: logging.LogRecord) -> str:
    text = str(record.msg)[:TEXT] if isinstance(record.msg, str) else type(record.msg).__name__
    return text if _says(text) else _line(record)


@lru_cache(maxsize=CAUSES)
def _says(text: str) -> bool:
    """Whether there is a word in a text, and so a place."""
    return bool(WORDS.sub("", text))


def _line(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()[:TEXT]
    except Exception:  # noqa: BLE001 - of an argument; the handler says so when it writes the line
        return str(record.msg)[:TEXT]
