"""Messages as bytes: a length, then marshal. No pipe is read or written here.

marshal is the fastest codec of the standard library for plain values, and both ends are the same
interpreter, started by the same agent: nothing from outside is ever unpacked.
"""

from __future__ import annotations

import marshal
import struct
from typing import Any

from otel_gpu.model import OtelGpuError

HEADER = struct.Struct(">I")
LIMIT = 64 * 1024 * 1024
"""Bytes of one message at most: a length beyond it is a torn or foreign stream, not a message."""


class FrameError(OtelGpuError):
    """A message that is too large, cut off, or not what `pack` writes."""


def pack(message: Any) -> bytes:
    """Turn a message of plain values into a frame. Raises FrameError when it is not such."""
    try:
        body = marshal.dumps(message)
    except ValueError as error:
        raise FrameError(f"a message holds more than plain values: {error}") from error
    if len(body) > LIMIT:
        raise FrameError(f"a message of {len(body)} bytes is over the limit of {LIMIT}")
    return HEADER.pack(len(body)) + body


class Unpacker:
    """Takes bytes as they come and gives the messages that are complete."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[Any]:
        """Add bytes, and take what is complete. Raises FrameError on what `pack` never writes."""
        self._bytes += data
        messages = []
        while (end := self._end()) is not None:
            messages.append(loads(bytes(self._bytes[HEADER.size : end])))
            del self._bytes[:end]
        return messages

    def finish(self) -> None:
        """Say that no more bytes will come. Raises FrameError inside a message."""
        if self._bytes:
            raise FrameError(f"the stream ended inside a message, {len(self._bytes)} bytes into it")

    def _end(self) -> int | None:
        if len(self._bytes) < HEADER.size:
            return None
        (length,) = HEADER.unpack_from(self._bytes)
        if length > LIMIT:
            raise FrameError(f"a message of {length} bytes is over the limit of {LIMIT}")
        end = HEADER.size + int(length)
        return end if len(self._bytes) >= end else None


def loads(body: bytes) -> Any:
    """Read one message. Raises FrameError when it is not marshal's."""
    try:
        return marshal.loads(body)  # noqa: S302 - from our own process only, see the module
    except (EOFError, ValueError, TypeError) as error:
        raise FrameError(f"a message cannot be read: {error}") from error
