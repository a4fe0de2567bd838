"""One worker process, seen from the agent: start it, ask it, be rid of it, all within limits."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from otel_gpu.model import BackendError, Event, System
from otel_gpu.worker.bootstrap import command, environment
from otel_gpu.worker.channel import Channel, ClosedError, Pipes, WaitEndedError
from otel_gpu.worker.failures import WorkerDied, WorkerHung
from otel_gpu.worker.frames import FrameError
from otel_gpu.worker.page import CallPage
from otel_gpu.worker.wire import Answered, Questions, answered, plain_questions, system

LAST_WORDS_S = 0.5  # how long after its pipes a dying worker may take to be gone

LOOKS = 10  # at the call in flight, for each deadline

_abandoned: list[subprocess.Popen[bytes]] = []


class Worker:
    """A running process that holds the driver, for one thread to talk to.

    After WorkerHung, WorkerDied or WaitEndedError there is nothing left to do with it but `close`.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], page: CallPage, interrupted: threading.Event
    ) -> None:
        self._process = process
        self._page = page
        pipes = cast("Pipes", (process.stdin, process.stdout, process.stderr))
        self._channel = Channel(pipes, interrupted.is_set)
        self.events: list[Event] = []  # heard with the answers, until somebody takes them
        self._polite = True  # False once it hung or died: then it is not asked to close
        self._hung = False  # then SIGTERM, which it cannot act on inside the call, is no use

    @classmethod
    def start(cls, backend: str, interrupted: threading.Event | None = None) -> Worker:
        """Start a process for a backend (see `open_backend`). Returns before it is ready.

        When `interrupted` is set, whoever waits for the worker leaves it at once. Raises OSError
        when the system has no room for another process.
        """
        page = CallPage.create()
        try:
            process = subprocess.Popen(
                command(backend, page.fd),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(page.fd,),
                env=environment(os.environ),
                start_new_session=True,  # a ^C on the terminal is for the agent alone
                bufsize=0,
            )
        except OSError:
            page.close()
            raise
        return cls(process, page, interrupted or threading.Event())

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def open(self, exclude: frozenset[str] = frozenset(), deadline_s: float = 30.0) -> System:
        """Start the driver and enumerate, or do so again; `exclude` is `Backend.open`'s.

        A call counts as hung when `deadline_s` passed without another call being made, so that
        many slow GPUs are not taken for one that hangs. Raises BackendError, WorkerHung,
        WorkerDied, WaitEndedError.
        """
        with self._watched([]):
            self._channel.send(("open", sorted(exclude)), time.monotonic() + deadline_s)
            kind, *rest = self._patient(deadline_s)
        if kind == "refused":
            raise BackendError(*rest)
        return system(rest[0])

    def ask(self, questions: Questions, deadline_s: float = 5.0) -> list[Answered]:
        """Ask GPUs in turn. `deadline_s` is for each of them, since the one before was done.

        Raises WorkerHung or WorkerDied, which carry what was answered before, or WaitEndedError.
        """
        done: list[Answered] = []
        message: Any
        with self._watched(done):
            self._channel.send(("ask", plain_questions(questions)), time.monotonic() + deadline_s)
            while (message := self._channel.receive(time.monotonic() + deadline_s))[0] != "done":
                done.append(answered(message))
        self.events += (Event(*event) for event in message[1])
        return done

    def close(self, timeout_s: float = 1.0) -> None:
        """Be rid of the process: ask it, then SIGTERM, then SIGKILL, each for `timeout_s` at most.

        A process that the kernel holds inside a driver call outlives even that. It is not waited
        for: see `abandoned`. Who is interrupted in here, by a second ^C, leaves no process behind.
        """
        try:
            if self._polite:
                self._say_goodbye(timeout_s)
            self._end(timeout_s)
        except BaseException:
            stopped(self._process, signal.SIGKILL, LAST_WORDS_S)
            raise
        finally:
            self._channel.close()
            self._page.close()

    def _end(self, timeout_s: float) -> None:
        self._channel.close()  # which a worker that is well takes for its end
        if not (
            (self._polite and gone(self._process, timeout_s))
            or (not self._hung and stopped(self._process, signal.SIGTERM, timeout_s))
            or stopped(self._process, signal.SIGKILL, timeout_s)
        ):
            _abandoned.append(self._process)

    def _patient(self, deadline_s: float) -> Any:
        """Receive, for as long as one call in flight makes way for the next."""
        seen, since_s = self._page.read().number, time.monotonic()
        while True:
            try:
                return self._channel.receive(time.monotonic() + deadline_s / LOOKS)
            except TimeoutError:
                number, now_s = self._page.read().number, time.monotonic()
                if number == seen and now_s - since_s >= deadline_s:
                    raise
                if number != seen:
                    seen, since_s = number, now_s

    @contextmanager
    def _watched(self, done: list[Answered]) -> Iterator[None]:
        """Give every way in which the worker can fail its name."""
        try:
            yield
        except TimeoutError as error:
            self._polite, self._hung = False, True
            raise WorkerHung(self._page.read(), done) from error
        except (ClosedError, FrameError) as error:
            self._polite = False
            gone(self._process, LAST_WORDS_S)
            status, tail = self._process.poll(), self._channel.tail
            raise WorkerDied(status, tail, self._page.read(), done) from error
        except WaitEndedError:
            self._polite = False
            raise

    def _say_goodbye(self, timeout_s: float) -> None:
        until_s = time.monotonic() + timeout_s
        try:
            self._channel.send(("close",), until_s)
            while self._channel.receive(until_s)[0] != "closed":
                pass
        except (TimeoutError, ClosedError, FrameError, WaitEndedError):
            self._polite = False


def abandoned() -> tuple[int, ...]:
    """Give the process ids of closed workers that are still there, and reap those that ended."""
    _abandoned[:] = [process for process in _abandoned if process.poll() is None]
    return tuple(process.pid for process in _abandoned)


def stopped(process: subprocess.Popen[bytes], number: signal.Signals, timeout_s: float) -> bool:
    """Send a signal, and tell whether the process ended in time."""
    process.send_signal(number)
    return gone(process, timeout_s)


def gone(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Tell whether a process ends in time, and reap it."""
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return False
    return True
