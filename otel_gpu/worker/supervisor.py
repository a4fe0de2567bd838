"""Keeps one worker alive and its driver open, and never fails for a reason of the hardware's.

What can go wrong, and what follows:

| | the worker | tried again after |
|---|---|---|
| the driver says no | stays | 1, 2, 4 .. 60 s |
| library and kernel module differ (18) | replaced: a library stays mapped | 1, 2, 4 .. 60 s |
| it died | replaced | at once, 1, 2, 4 .. 60 s |
| a call hangs | ended and replaced, without that GPU | at once, 1, 2, 4 .. 300 s |
| the GPU that hung | | 1 min, 2, 4 .. 60 min: the others are re-opened with it |
| somebody asks for the GPUs (`release`) | ended | when they may be taken back |
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import NamedTuple

from otel_gpu.model import BackendError, Code, Device, Event, System
from otel_gpu.usage import Usage, usage
from otel_gpu.worker.channel import WaitEndedError
from otel_gpu.worker.failures import WorkerFailed, WorkerHung
from otel_gpu.worker.process import Worker, abandoned
from otel_gpu.worker.sleeping import asleep
from otel_gpu.worker.suspects import Hang, Suspects
from otel_gpu.worker.wire import Answered, Questions

FIRST_S = 1.0
LONGEST_S = 60.0
LONGEST_HUNG_S = 300.0
STUCK = (
    "Reboot the node if it stays so; the kernel log (Xid 79, 119, 120) says more, and "
    "nvidia-bug-report.sh --safe-mode collects it"
)

ASLEEP = "the GPUs sleep (runtime power management)"
WAKES = "they are read as soon as another process has woken one"
TAKE_BACK = "otel-gpu resume takes the GPUs back"

log = logging.getLogger(__name__)


class Release(NamedTuple):
    """Why the devices are let go, and until when (monotonic seconds)."""

    why: str
    until_s: float

    @property
    def remedy(self) -> str:
        """What brings them back, if time does not."""
        return TAKE_BACK if self.until_s == math.inf else ""


class Supervisor:
    """The door to the driver: `system` opens what is not open when it is time, `ask` asks it.

    One thread, the sampler's, calls these two; `interrupt`, `release`, `resume` and the properties
    are for any thread. Between calls nothing happens: there is no thread here.

    `backend` is `open_backend`'s name, `deadline_s` is for one GPU in a sweep, `open_deadline_s`
    for one call of an enumeration; `sleeps` tells whether to open the driver would wake GPUs.
    """

    def __init__(
        self,
        backend: str,
        *,
        deadline_s: float = 5.0,
        open_deadline_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
        sleeps: Callable[[], bool] = asleep,
    ) -> None:
        self._backend = backend
        self._sleeps = sleeps if backend == "nvml" else lambda: False
        self._deadline_s = deadline_s
        self._open_deadline_s = open_deadline_s
        self._clock = clock
        self._interrupted = threading.Event()
        self._worker: Worker | None = None
        self._system: System | None = None
        self._events: list[Event] = []
        self._known: Mapping[str, Device] = {}
        self._excluded: frozenset[str] = frozenset()
        self._suspects = Suspects()
        self._trouble: BackendError | None = None
        self._restarts = dict.fromkeys(("hung", "died", "mismatch"), 0)
        self._generation = 0
        self._failures = 0
        self._retry_s = -math.inf
        self._stale = False
        self._releasing = threading.Lock()
        self._release: Release | None = None
        self._breaking = False  # what is under way is broken off for a release
        self._is_free = threading.Event()  # every device was let go, and none is taken back
        self.waiting = False  # for the driver: each wait has its deadline

    @property
    def trouble(self) -> BackendError | None:
        """Why there is no system, while there is none."""
        return self._trouble

    @property
    def hung(self) -> tuple[Hang, ...]:
        """The calls that hang, until their GPU answers again or is gone."""
        return self._suspects.hangs

    @property
    def restarts(self) -> Mapping[str, int]:
        """How often a worker had to be replaced, by reason: hung, died, mismatch."""
        return MappingProxyType(self._restarts)

    @property
    def generation(self) -> int:
        """Grows with each successful open: what is read once per enumeration is then read anew."""
        return self._generation

    @property
    def abandoned(self) -> tuple[int, ...]:
        """Process ids of workers that would not end: they still hold the driver's device files."""
        return abandoned()

    def usage(self) -> Usage | None:
        """Read what the present worker has cost so far; None while there is none."""
        worker = self._worker
        return usage(worker.pid) if worker else None

    def system(self, now: float) -> System | None:
        """Give what is open, after opening or re-opening it if it is time for that.

        `now` is monotonic seconds. Blocks while the driver enumerates. None: see `trouble`.
        """
        if release := self._asked_for(now):
            self._let_go(release)
            return None
        due = self._system is None or self._stale or self._excluded != self._suspects.excluded(now)
        if due and now >= self._retry_s and not self._interrupted.is_set():
            if self._worker is None and self._sleeps():
                self._refuse_to_wake()
                return None
            with self._waits():
                self._open(now)
        return self._system

    def ask(self, questions: Questions) -> list[Answered]:
        """Ask GPUs in turn; fewer come back when one of them hangs or the worker dies."""
        if self._worker is None or self._system is None:
            return []
        try:
            with self._waits():
                answered = self._worker.ask(questions, self._deadline_s)
        except WorkerFailed as failure:
            self._failed(failure)
            return list(failure.answered)
        except WaitEndedError:
            self._system = None
            return []
        self._failures = 0
        self._suspects.clear({one.uuid for one in answered} & self._known.keys())
        self._events += self._worker.events
        self._worker.events.clear()
        return answered

    def events(self) -> list[Event]:
        """Take what the driver told with the answers since the last call."""
        taken, self._events = self._events, []
        return taken

    def reopen(self) -> None:
        """Have the next `system` enumerate again: a GPU, a MIG instance or the driver changed."""
        self._stale = True

    def release(self, why: str, for_s: float = math.inf) -> None:
        """Have the next `system` let every device go, and open none for so long.

        A call that is under way is broken off. `why` is what trouble says in the meantime.
        """
        with self._releasing:
            asked = Release(why, self._clock() + for_s)
            # The longer one counts: a GPU that leaves does not end what a person asked for.
            self._release = max(self._release or asked, asked, key=lambda one: one.until_s)
            if not self._is_free.is_set():
                self._breaking = True
                self._interrupted.set()

    def wait_until_free(self, timeout_s: float) -> bool:
        """Wait until what `release` asks for is done; whether it was in time."""
        return self._is_free.wait(timeout_s)

    def resume(self) -> None:
        """Have the next `system` open the driver again. Nothing happens where it is open."""
        with self._releasing:
            self._release = None

    def interrupt(self) -> None:
        """Make a thread inside `system` or `ask` return at once, and keep it out until `close`."""
        self._interrupted.set()

    def close(self) -> None:
        """Release the driver and the process, within seconds. A later `system` opens it again."""
        self._discard()
        self._interrupted.clear()
        self._trouble = None
        self._failures = 0
        self._retry_s = -math.inf

    def _asked_for(self, now: float) -> Release | None:
        """Give the release that is in force; after one, the driver is opened at once."""
        with self._releasing:
            if self._release and now >= self._release.until_s:
                self._release = None
            if self._release is None and (self._breaking or self._is_free.is_set()):
                self._breaking = False
                self._is_free.clear()
                self._interrupted.clear()
                self.close()
            return self._release

    def _refuse_to_wake(self) -> None:
        if self._trouble is None or self._trouble.text != ASLEEP:
            self._trouble = BackendError(Code.UNINITIALIZED, ASLEEP, WAKES)
            log.info("%s", self._trouble)

    def _let_go(self, release: Release) -> None:
        if self._is_free.is_set():
            return
        self._breaking = False
        self._interrupted.clear()  # nothing is under way now, so the worker can be asked to close
        self._discard()
        self._trouble = BackendError(Code.UNINITIALIZED, release.why, release.remedy)
        log.info("%s", self._trouble)
        self._is_free.set()

    @contextmanager
    def _waits(self) -> Iterator[None]:
        self.waiting = True
        try:
            yield
        finally:
            self.waiting = False

    def _open(self, now: float) -> None:
        exclude = self._suspects.excluded(now)
        self._system, self._stale = None, False
        try:
            if self._worker is None:
                self._worker = Worker.start(self._backend, self._interrupted)
            opened = self._worker.open(exclude, self._open_deadline_s)
        except BackendError as error:
            self._refused(error)
        except WorkerFailed as failure:
            self._failed(failure)
        except OSError as error:
            self._refused(BackendError(Code.UNKNOWN, f"the NVML worker did not start: {error}"))
        except WaitEndedError:
            pass  # whoever interrupted closes next
        else:
            self._opened(opened, exclude, now)

    def _opened(self, system: System, exclude: frozenset[str], now: float) -> None:
        self._known = {device.uuid: device for device in system.devices}
        self._suspects.settle(self._known, now)
        self._system, self._excluded, self._trouble = system, exclude, None
        self._generation += 1
        driver = system.driver_version or self._backend
        log.info("driver %s open with %d devices", driver, len(self._known))

    def _refused(self, error: BackendError) -> None:
        mismatch = error.code == Code.LIB_RM_VERSION_MISMATCH
        self._explain(error, "mismatch" if mismatch else None)
        self._wait(LONGEST_S)

    def _failed(self, failure: WorkerFailed) -> None:
        """Say what happened before anything else is done, for what follows can take seconds."""
        if isinstance(failure, WorkerHung):
            hang = Hang(failure.call, failure.uuid, self._clock())
            self._suspects.accuse(hang, self._names(failure.uuid), hang.since)
            self._explain(BackendError(Code.TIMEOUT, str(failure), STUCK), "hung")
            self._wait(LONGEST_HUNG_S, at_once=True)
        else:
            self._explain(BackendError(Code.UNKNOWN, str(failure)), "died")
            self._wait(LONGEST_S, at_once=True)

    def _explain(self, error: BackendError, restart: str | None) -> None:
        if str(error) != str(self._trouble):
            log.error("%s", error)
        self._system, self._trouble = None, error
        if restart:
            self._restarts[restart] += 1
            self._discard()

    def _names(self, uuid: str) -> frozenset[str]:
        """Give every name of the GPU that a UUID or an index leads to; an instance's is its GPU."""
        device = self._known.get(uuid)
        if device is None:
            return frozenset({uuid} - {""})
        return frozenset({device.parent or device.uuid, str(device.index)})

    def _wait(self, longest_s: float, *, at_once: bool = False) -> None:
        """Say when to try again; `at_once` the first time, because the others wait behind it."""
        failures = self._failures - at_once
        self._retry_s = self._clock() + (backoff_s(failures, longest_s) if failures >= 0 else 0.0)
        self._failures += 1

    def _discard(self) -> None:
        worker, self._worker, self._system = self._worker, None, None
        if worker:
            worker.close()
            if worker.pid in abandoned():
                log.error(
                    "worker %d does not end: the kernel holds it in a driver call", worker.pid
                )


def backoff_s(failures: int, longest_s: float) -> float:
    """Give the wait after a failure that was preceded by so many others."""
    return min(FIRST_S * 2.0 ** min(failures, 30), longest_s)  # 2.0 ** 1024 would be an error
