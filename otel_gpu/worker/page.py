"""The call in flight, in a page of memory that agent and worker share.

The worker writes here right before every NVML call. When a call never returns, the worker can say
nothing more, and the agent reads here which call it was and on which GPU.
"""

from __future__ import annotations

import mmap
import os
import struct
from typing import NamedTuple

HEAD = struct.Struct("=QH")  # calls so far, bytes of text behind it
ROOM = mmap.PAGESIZE - HEAD.size


class Flight(NamedTuple):
    """What the worker was last about to do: `number` grows with each call, and shows progress."""

    number: int
    uuid: str
    call: str


class CallPage:
    """One end of the shared page. The descriptor `fd` is what the worker inherits."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._number = 0
        self._memory = mmap.mmap(fd, mmap.PAGESIZE)

    @classmethod
    def create(cls) -> CallPage:
        """Make a new page, empty, that no file system shows."""
        fd = os.memfd_create("otel-gpu-call")
        os.ftruncate(fd, mmap.PAGESIZE)
        return cls(fd)

    def note(self, uuid: str, call: str) -> None:
        """Say which call comes next, and on which GPU. One copy, so it is never half old."""
        self._number += 1
        text = f"{uuid}\0{call}".encode()[:ROOM]
        self._memory[: HEAD.size + len(text)] = HEAD.pack(self._number, len(text)) + text

    def read(self) -> Flight:
        """Read what the other end noted last."""
        number, length = HEAD.unpack_from(self._memory)
        text = self._memory[HEAD.size : HEAD.size + length].decode(errors="replace")
        uuid, _, call = text.partition("\0")
        return Flight(number, uuid, call)

    def close(self) -> None:
        """Give the page back."""
        self._memory.close()
        os.close(self.fd)
