"""The agent's end of the worker's pipes: never blocks for longer than it was told to."""

from __future__ import annotations

import os
import select
import time
from collections import deque
from collections.abc import Callable
from typing import IO, Any

from otel_gpu.model import OtelGpuError
from otel_gpu.worker.frames import Unpacker, pack

TAIL = 4096  # bytes of the worker's last words that are kept for an error message
SLICE_S = 0.1  # how soon an interruption by another thread is noticed
CHUNK = 1 << 16  # what a Linux pipe holds


class ClosedError(OtelGpuError):
    """The worker's end is closed: it is gone."""


class WaitEndedError(OtelGpuError):
    """Another thread wants this one to wait no longer."""


Pipes = tuple[IO[bytes], IO[bytes], IO[bytes]]
"""To the worker's stdin, from its stdout, from its stderr."""


class Channel:
    """Three pipes: messages out, messages in, and the worker's stderr, of which the end is kept.

    The pipes become non-blocking and belong to the channel. Waiting ends at a moment of
    `time.monotonic`, or when `interrupted()` says so.
    """

    def __init__(self, pipes: Pipes, interrupted: Callable[[], bool]) -> None:
        self._pipes = pipes
        self._outgoing, self._incoming, self._errors = (pipe.fileno() for pipe in pipes)
        self._interrupted = interrupted
        self._unpacker = Unpacker()
        self._messages: deque[Any] = deque()
        self._unsent = memoryview(b"")
        self._tail = bytearray()
        self._listening = True
        self._poll = select.poll()
        for pipe in pipes:
            os.set_blocking(pipe.fileno(), False)
        self._poll.register(self._incoming, select.POLLIN)
        self._poll.register(self._errors, select.POLLIN)

    @property
    def tail(self) -> str:
        """The end of what the worker wrote to stderr."""
        return self._tail.decode(errors="replace").strip()

    def send(self, message: Any, until_s: float) -> None:
        """Send one message. Raises TimeoutError, ClosedError, WaitEndedError or FrameError."""
        self._unsent = memoryview(pack(message))
        self._poll.register(self._outgoing, select.POLLOUT)
        try:
            while self._unsent:
                self._turn(until_s)
        finally:
            self._poll.unregister(self._outgoing)

    def receive(self, until_s: float) -> Any:
        """Receive one message. Raises TimeoutError, ClosedError, WaitEndedError or FrameError."""
        while not self._messages:
            self._turn(until_s)
        return self._messages.popleft()

    def close(self) -> None:
        """Close the three pipes; the worker sees the end of its input."""
        for pipe in self._pipes:
            pipe.close()

    def _turn(self, until_s: float) -> None:
        """Wait for one thing to happen, and do it."""
        if self._interrupted():
            raise WaitEndedError("waiting for the worker was interrupted")
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        for fd, _ in self._poll.poll(1000 * min(left_s, SLICE_S) + 1):
            if fd == self._errors:
                self._listen()
            elif fd == self._outgoing:
                self._write()
            else:
                self._read()

    def _write(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._outgoing, self._unsent[:CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError as error:
            self._listen()
            raise ClosedError("the worker closed its input") from error

    def _read(self) -> None:
        data = os.read(self._incoming, CHUNK)
        if not data:
            self._listen()
            self._unpacker.finish()
            raise ClosedError("the worker closed its output")
        self._messages += self._unpacker.feed(data)

    def _listen(self) -> None:
        """Keep the end of stderr, so that its pipe never fills and never blocks the worker."""
        try:
            data = os.read(self._errors, CHUNK)
        except BlockingIOError:
            return
        if not data and self._listening:
            # A descriptor at its end is ready for ever: polling it on would spin.
            self._poll.unregister(self._errors)
            self._listening = False
        self._tail = (self._tail + data)[-TAIL:]
