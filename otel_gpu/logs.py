"""The agent's log on stderr: text for a person, one JSON object a line for a machine.

A line may carry what others wrote: a process's name, a server's answer, a file's text. It cannot
end the line and begin another, nor move a terminal's cursor, nor be longer than `LONGEST`.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal, TextIO

from otel_gpu.budgets.lines import LineBudget

Format = Literal["auto", "text", "json"]

LONGEST = 8192
"""Bytes of a message at most, as they are written; as much again may be its traceback."""

CUT = " ... [cut] ... "

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What ends a line, moves a cursor, turns the direction of writing, or is no character at all."""


class TextFormatter(logging.Formatter):
    """One line for a record; those of a traceback are indented, so that none looks like a record's.

    What is not printable is written as Python writes it in a string.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Give the line, and the traceback if any."""
        message = shortened(record.getMessage(), written)
        line = f"{self.formatTime(record)} {record.levelname:<7} {visible(message)}"
        if not record.exc_info:
            return line
        traceback = ending(self.formatException(record.exc_info), written).split("\n")
        return "\n".join([line, *(f"    {visible(one)}" for one in traceback)])


class JsonFormatter(logging.Formatter):
    """One object a line: time (RFC 3339, UTC), level, logger, message, and the traceback if any."""

    def format(self, record: logging.LogRecord) -> str:
        """Give the line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": shortened(record.getMessage(), quoted),
        }
        if record.exc_info:
            line["exception"] = ending(self.formatException(record.exc_info), quoted)
        return dumped(line)


def configure(level: str, form: Format, stream: TextIO = sys.stderr) -> None:
    """Send every logger's lines to the stream, in the configured form."""
    handler = logging.StreamHandler(stream)
    is_json = form == "json" or (form == "auto" and not stream.isatty())
    handler.setFormatter(JsonFormatter() if is_json else TextFormatter())
    handler.addFilter(LineBudget(handler, suppressed=suppressed()))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def suppressed() -> int:
    """Give how many lines were not written because their cause wrote too many."""
    handlers = logging.getLogger().handlers
    filters = (one for handler in handlers for one in handler.filters)
    return sum(one.suppressed for one in filters if isinstance(one, LineBudget))


def visible(text: str) -> str:
    """Write what is not printable as Python writes it in a string."""
    return CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def dumped(value: object) -> str:
    """Write JSON in one line, for readers too who take U+2028 or U+0085 for the end of one."""
    return CONTROL.sub(lambda f: f"\\u{ord(f[0]):04x}", json.dumps(value, ensure_ascii=False))


def written(text: str) -> int:
    """Count the bytes of a text once it is visible."""
    return len(visible(text).encode())


def quoted(text: str) -> int:
    """Count the bytes of a text in JSON."""
    return len(dumped(text).encode())


def shortened(text: str, size: Callable[[str], int]) -> str:
    """Give the beginning of a text that is too long."""
    head = text[: LONGEST + 1]  # a character is a byte at least: the rest need not be looked at
    if size(head) <= LONGEST:
        return text
    return head[: _fitting(lambda count: size(head[:count] + CUT))] + CUT


def ending(text: str, size: Callable[[str], int]) -> str:
    """Give the end of a text that is too long: there a traceback says what was raised."""
    tail = text[-LONGEST - 1 :]
    if size(tail) <= LONGEST:
        return text
    count = _fitting(lambda count: size(CUT + tail[len(tail) - count :]))
    return CUT + tail[len(tail) - count :]


def _fitting(size: Callable[[int], int]) -> int:
    """Give the largest count whose size is allowed."""
    low, high = 0, LONGEST
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if size(middle) <= LONGEST else (low, middle - 1)
    return low
