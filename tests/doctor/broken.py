"""Backends of one GPU that go wrong in one way each; the worker imports them by `spec`."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence

from otel_gpu.model import Answer, Device, Event, Query, System

GPU = Device(uuid="GPU-a", index=0, minor=0, model="NVIDIA H200", pci_address="0000:01:00.0")


def spec(backend: type[Sound]) -> str:
    """Name a class as a backend."""
    return f"python:{backend.__module__}:{backend.__name__}"


class Sound:
    """Opens, and answers 1 to everything."""

    def __init__(self) -> None:
        self.on_call: Callable[[str, str], None] = lambda _uuid, _call: None

    def open(self, exclude: frozenset[str] = frozenset()) -> System:
        self.on_call("", "nvmlInitWithFlags")
        self.start()
        return System(driver_version="580.1", devices=(GPU,) if GPU.uuid not in exclude else ())

    def start(self) -> None:
        """Go wrong."""

    def ask(self, uuid: str, queries: Sequence[Query]) -> list[Answer]:
        return [self.answer(uuid, query) for query in queries]

    def answer(self, uuid: str, query: Query) -> Answer:
        self.on_call(uuid, query.call)
        return Answer(0, 1)

    def events(self) -> list[Event]:
        return []

    def close(self) -> None:
        """Nothing is held."""


class Hangs(Sound):
    """Never comes back, and does not heed SIGTERM: as near to the kernel's D state as it gets."""

    def start(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        threading.Event().wait()


class Dies(Sound):
    """Crashes as a library does."""

    def start(self) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)


class Crawls(Sound):
    """Makes call after call, each of them in time, and comes to no end."""

    def start(self) -> None:
        while True:
            self.on_call("0", "nvmlDeviceGetHandleByIndex")
            time.sleep(0.05)


class GoesSilent(Sound):
    """Opens, and then each question says that the GPU is lost."""

    def answer(self, uuid: str, query: Query) -> Answer:
        self.on_call(uuid, query.call)
        return Answer(15)


class WithoutPersistence(Sound):
    """Has persistence mode off."""

    def answer(self, uuid: str, query: Query) -> Answer:
        self.on_call(uuid, query.call)
        return Answer(0, 0 if query.call == "nvmlDeviceGetPersistenceMode" else 1)
