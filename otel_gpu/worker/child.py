"""The worker itself: a loop that reads requests, asks a backend, and writes what it said.

It runs in an interpreter of its own and imports no more than the backend needs. It ends when its
input ends, which is also how it learns that the agent is gone; a "parent death" signal would come
when the thread that started it ends, which is not the same.
"""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NoReturn

from otel_gpu.backends import open_backend
from otel_gpu.model import Backend, BackendError, Code, ConfigError, Event, Query
from otel_gpu.worker.frames import Unpacker, pack
from otel_gpu.worker.page import CallPage
from otel_gpu.worker.wire import plain_answers, plain_events, plain_system

STDIN, STDOUT, STDERR = 0, 1, 2
CHUNK = 1 << 16


def main(backend: str, page: int) -> None:
    """Serve the agent that started this process, until it closes our input."""
    woken, waker = os.pipe()
    os.set_blocking(waker, False)  # as Python wants it
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, leave)
    faulthandler.enable()  # a crash inside the driver's library then says where we were
    # What a library prints to stdout must not get between our messages.
    answers = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)
    with suppress(BrokenPipeError):  # the agent is gone, and nobody is left to be told
        Server(lambda: open_backend(backend), CallPage(page), answers).serve(STDIN, woken)


def leave(*_: object) -> NoReturn:
    """Unwind, so that the driver is shut down in order."""
    sys.exit(0)


class Server:
    """Answers requests about the one backend that it makes when first asked to open it."""

    def __init__(self, make: Callable[[], Backend], page: CallPage, sink: int) -> None:
        self._make = make
        self._page = page
        self._sink = sink
        self._backend: Backend | None = None

    def serve(self, source: int, woken: int) -> None:
        """Answer until the input ends, then release the driver. `woken` tells of signals."""
        requests: dict[str, Callable[..., None]] = {
            "open": self.open,
            "ask": self.ask,
            "close": self.close,
        }
        try:
            for kind, *rest in messages(source, woken):
                requests[kind](*rest)
                self._page.note("", "")
        finally:
            self._release()

    def open(self, exclude: list[str]) -> None:
        """Start the driver and enumerate, or say why not."""
        try:
            if self._backend is None:
                self._backend = self._make()
                self._backend.on_call = self._page.note
            opened = self._backend.open(frozenset(exclude))
        except BackendError as error:
            self._send("refused", int(error.code), error.text, error.remedy)
        except ConfigError as error:
            self._send("refused", int(Code.INVALID_ARGUMENT), str(error), "")
        else:
            self._send("opened", plain_system(opened))

    def ask(self, questions: list[tuple[str, list[tuple[Any, ...]]]]) -> None:
        """Ask one GPU after the other, and send each one's answers as soon as they are there."""
        for uuid, queries in questions:
            read_s = time.monotonic()
            answers = self._ask(uuid, [Query(*query) for query in queries])
            self._send("answers", uuid, read_s, answers)
        self._send("done", plain_events(self._events()))

    def close(self) -> None:
        """Release every handle; the process stays, and may be asked to open again."""
        self._release()
        self._send("closed")

    def _ask(self, uuid: str, queries: list[Query]) -> list[tuple[int, Any]]:
        if self._backend is None:
            return [(int(Code.UNINITIALIZED), None)] * len(queries)
        return plain_answers(self._backend.ask(uuid, queries))

    def _events(self) -> list[Event]:
        return [] if self._backend is None else self._backend.events()

    def _release(self) -> None:
        if self._backend is not None:
            self._backend.close()

    def _send(self, *message: Any) -> None:
        left = memoryview(pack(message))
        while left:
            left = left[os.write(self._sink, left) :]


def messages(source: int, woken: int) -> Iterator[tuple[Any, ...]]:
    """Read messages until the input ends. Raises FrameError when it ends inside one.

    A signal that comes just before a blocking read is not acted on until there is something to
    read. So we wait for either, and the read that follows does not block.
    """
    unpacker = Unpacker()
    while True:
        ready, _, _ = select.select([source, woken], [], [])
        if woken in ready:
            os.read(woken, CHUNK)
        if source in ready:
            if not (data := os.read(source, CHUNK)):
                break
            yield from unpacker.feed(data)
    unpacker.finish()
