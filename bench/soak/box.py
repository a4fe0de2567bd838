"""The simulated box under random faults, with processes that come and go every second.

The worker makes it: `python:bench.soak.box:Stormy:SPEC`. SPEC is START,SECONDS,SEED,FILE: the
monotonic second at which the run began, its length, its seed, and the file in which each fault that
really struck is written down, one a line.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from math import floor
from pathlib import Path

from bench.soak.crowd import Crowd, joined
from bench.soak.windows import Habit, Storm, Timeline, Window
from otel_gpu.backends.simulated import SimulatedBackend
from otel_gpu.backends.simulation.chance import Chance
from otel_gpu.backends.simulation.faulty import forever
from otel_gpu.backends.simulation.processes import UNDIVIDED
from otel_gpu.model import Answer, BackendError, Code, Event, EventKind, Query, System

BOX = "h200x8"
GPUS = 8

FAULTS: Mapping[str, Habit] = {
    "lost": Habit(30, 3, 15),
    "refused": Habit(10, 2, 15),
    "slow": Habit(20, 2, 8),
    "hang": Habit(60, 6, 6, after_s=62),  # its GPU is left out for a minute
    "absent": Habit(90, 3, 8),
    "died": Habit(100, 1.2, 1.2),
    "reconfigured": Habit(40, 1.2, 1.2),
    "xid": Habit(6, 1.2, 1.2),
}
"""The kinds. All but `absent` and `died` are about one GPU; `reconfigured` has the box enumerated
anew, as after a change of MIG instances."""

TOLD = {"xid": EventKind.XID, "reconfigured": EventKind.MIG}
HANGS = "nvmlDeviceGetTemperatureV"
REFUSED = 0.2  # of all calls of the GPU
REFUSALS = (Code.NOT_READY, Code.TIMEOUT, Code.NO_DATA, Code.NOT_SUPPORTED)
XIDS = (13, 31, 43, 45, 48, 63, 74, 79, 94, 119)


class Stormy:
    """A `model.Backend`: the simulated box's answers, less what the storm takes away."""

    def __init__(self, spec: str) -> None:
        start, seconds, seed, file = spec.split(",", 3)
        self._start_s, self._file = float(start), Path(file)
        self._storm = Storm(f"{seed}/box", FAULTS, Timeline(float(seconds)))
        self._box = SimulatedBackend.from_spec(f"{BOX},seed={seed}")
        self._crowd = Crowd(Chance("soak", seed))
        self._places: dict[str, int] = {}
        self._open: dict[str, Window] = {}
        self._latest: dict[str, Window] = {}  # of each kind, that struck
        self._events: list[Event] = []

    @property
    def on_call(self) -> Callable[[str, str], None]:
        """What hears of each call."""
        return self._box.on_call

    @on_call.setter
    def on_call(self, hear: Callable[[str, str], None]) -> None:
        self._box.on_call = hear

    def open(self, exclude: frozenset[str] = frozenset()) -> System:
        """Enumerate the box. Raises BackendError while the driver is absent."""
        self._look()
        if "absent" in self._open:
            self._strike("absent")
            raise BackendError(Code.DRIVER_NOT_LOADED, "the driver is absent, as planned")
        system = self._box.open(exclude)
        self._places = {device.uuid: device.index for device in system.devices}
        return system

    def ask(self, uuid: str, queries: Sequence[Query]) -> list[Answer]:
        """Answer for one GPU, as far as the storm lets it."""
        place, now_s = self._places.get(uuid, -1), self._look()
        self._die()
        hits = {kind for kind, window in self._open.items() if gpu(window) == place}
        if "hang" in hits:
            self._strike("hang")
            self.on_call(uuid, HANGS)
            forever()
        if "slow" in hits:
            self._strike("slow")
            time.sleep(0.1 + self._open["slow"].chance)
        for kind in hits & TOLD.keys():
            if self._strike(kind):
                self._tell(kind, uuid)
        if "lost" in hits:
            self._strike("lost")
            return [Answer(Code.GPU_IS_LOST)] * len(queries)
        answers = self._box.ask(uuid, queries)
        if "refused" in hits:
            self._strike("refused")
            answers = [self._refused(*pair) for pair in zip(queries, answers, strict=True)]
        crowd = self._crowd.at(place, now_s)
        return [joined(*pair, crowd) for pair in zip(queries, answers, strict=True)]

    def events(self) -> list[Event]:
        """Give what the driver told since the last call."""
        told, self._events = self._events, []
        return told

    def close(self) -> None:
        """Release the box."""
        self._box.close()

    def _look(self) -> float:
        """See what is wrong now; give the second of the run."""
        now_s = time.monotonic() - self._start_s
        self._open = {window.kind: window for window in self._storm.at(now_s)}
        return now_s

    def _strike(self, kind: str) -> bool:
        """Write down a fault that strikes; whether it does so for the first time."""
        window = self._open[kind]
        if self._latest.get(kind) == window:
            return False
        self._latest[kind] = window
        with self._file.open("a", encoding="utf-8") as file:
            file.write(f"{kind} {window.since_s:.3f}\n")
        return True

    def _die(self) -> None:
        """End this process, if it is time: a driver is unloaded only when nobody holds it."""
        for kind, number in (("absent", signal.SIGTERM), ("died", signal.SIGKILL)):
            if kind in self._open:
                self._strike(kind)
                os.kill(os.getpid(), number)
                forever()

    def _tell(self, kind: str, uuid: str) -> None:
        code = XIDS[floor(self._open[kind].chance * 1e6) % len(XIDS)]
        told = Event(uuid, TOLD[kind], code, UNDIVIDED, UNDIVIDED, time.time_ns())
        self._events.append(told)

    def _refused(self, query: Query, answer: Answer) -> Answer:
        """Refuse a part of the calls, another one each time."""
        fate = Chance(self._open["refused"].since_s).unit(query.call, *query.args)
        code = REFUSALS[floor(fate * 1e6) % len(REFUSALS)]
        return Answer(code) if fate < REFUSED else answer


def gpu(window: Window) -> int:
    """Give the index of the GPU that a window is about."""
    return floor(window.chance * GPUS)


def struck(file: Path) -> Mapping[str, int]:
    """Count the faults that struck, by kind, however many workers wrote the same one down."""
    lines = set(file.read_text(encoding="utf-8").splitlines()) if file.exists() else set[str]()
    return {kind: sum(line.startswith(f"{kind} ") for line in lines) for kind in FAULTS}
