"""A backend with three GPUs whose faults are files in a directory: the worker imports it.

`python:MODULE:Faulty:DIRECTORY` makes one. A fault is there while its file is:

- `hang`, `stubborn`: GPU-b does not answer; when stubborn, SIGTERM does not help either.
- `hang-open`: the GPU with index 1 does not open, unless it is left out.
- `crash`: the next question to GPU-b kills the process, and only that.
- `refuse`: the driver does not open, with the code that the file holds.
- `noise`: a library prints to stdout and stderr.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from otel_gpu.model import Answer, BackendError, Code, Device, Event, Query, System

UUIDS = ("GPU-a", "GPU-b", "GPU-c")
POWER = Query("nvmlDeviceGetPowerUsage")
MODULES = Query("modules")
EXCLUDED = Query("excluded")
LONG = Query("long")


class Faulty:
    def __init__(self, directory: str) -> None:
        self.on_call: Callable[[str, str], None] = lambda _uuid, _call: None
        self._directory = Path(directory)
        self._exclude: frozenset[str] = frozenset()
        self._asked = 0

    def open(self, exclude: frozenset[str] = frozenset()) -> System:
        self.on_call("", "nvmlInitWithFlags")
        if self._fault("refuse"):
            code = int((self._directory / "refuse").read_text())
            raise BackendError(code, f"NVML said {code}", "do something")
        self._exclude = exclude
        devices = []
        for index, uuid in enumerate(UUIDS):
            if str(index) in exclude:
                continue
            self.on_call(str(index), "nvmlDeviceGetHandleByIndex")
            if index == 1 and self._fault("hang-open"):
                hang()
            if uuid not in exclude:
                devices.append(Device(uuid=uuid, index=index, minor=index))
        return System(driver_version="580.1", devices=tuple(devices))

    def ask(self, uuid: str, queries: Sequence[Query]) -> list[Answer]:
        if uuid in self._exclude:
            return [Answer(Code.GPU_NOT_FOUND)] * len(queries)
        return [self._answer(uuid, query) for query in queries]

    def events(self) -> list[Event]:
        return []

    def close(self) -> None:
        (self._directory / "closed").touch()

    def _answer(self, uuid: str, query: Query) -> Answer:
        self.on_call(uuid, query.call)
        self._asked += 1
        if uuid == "GPU-b":
            self._suffer()
        if self._fault("noise"):
            os.write(1, b"a library says something\n")
            os.write(2, b"a library warns\n")
        answers = {MODULES: sorted(sys.modules), EXCLUDED: sorted(self._exclude), LONG: "x" * 10**6}
        return Answer(0, answers.get(query, self._asked))

    def _suffer(self) -> None:
        if self._fault("stubborn"):
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            hang()
        if self._fault("hang"):
            hang()
        if self._fault("crash"):
            (self._directory / "crash").unlink()
            os.kill(os.getpid(), signal.SIGSEGV)

    def _fault(self, name: str) -> bool:
        return (self._directory / name).exists()


class Broken:
    """Not a backend: it fails while it is made."""

    def __init__(self) -> None:
        raise RuntimeError("this backend is broken")


def hang() -> None:
    while True:
        time.sleep(60)
