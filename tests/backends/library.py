"""Stands in for libnvidia-ml.so.1 below pynvml, which really packs and unpacks every struct.

pynvml looks functions up on its module's `nvmlLib`. Here that is a Python object whose functions
get the ctypes arguments that the C functions get, and answer through the same pointers. A function
that nobody gave it is not in this "driver's" library.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from otel_gpu.backends.nvml import nvml

since_r570 = pytest.mark.skipif(
    not hasattr(nvml, "nvmlDeviceGetTemperatureV"), reason="this pynvml is older"
)

NOT_SUPPORTED, NOT_FOUND = 3, 6

Function = Callable[..., int]
"""Takes what pynvml passes behind the handle, and returns a code."""


@dataclass
class Gpu:
    """A GPU or an instance, and what its functions do, by their name in C."""

    uuid: str
    functions: dict[str, Function] = field(default_factory=dict)
    slots: Sequence[Gpu | None] | None = None  # MIG is on: its instances, None in an empty slot
    opens: int = 0  # the code of nvmlDeviceGetHandleByIndex

    def answer(self, name: str, *arguments: Any) -> int:
        own = {"nvmlDeviceGetUUID": says(self.uuid), **self._partition(), **self.functions}
        return own[name](*arguments) if name in own else NOT_SUPPORTED

    def _partition(self) -> dict[str, Function]:
        if self.slots is None:
            return {"nvmlDeviceGetMigMode": gives(0, 0)}
        return {
            "nvmlDeviceGetMigMode": gives(1, 1),
            "nvmlDeviceGetMaxMigDeviceCount": gives(len(self.slots)),
            "nvmlDeviceGetMigDeviceHandleByIndex": self._slot,
        }

    def _slot(self, number: Any, pointer: Any) -> int:
        instance = (self.slots or ())[number.value]
        return NOT_FOUND if instance is None else hand_out(pointer, instance)


class Library:
    """A driver; `calls` is what was called, `running` how often it was started and not stopped."""

    def __init__(
        self,
        *gpus: Gpu,
        driver_version: str = "580.159.04",
        init: int = 0,
        count: Function | None = None,
    ) -> None:
        self.calls: list[str] = []
        self.running = 0
        self._gpus = gpus
        self._init = init
        self._system: dict[str, Function] = {
            "nvmlInitWithFlags": self._start,
            "nvmlShutdown": self._stop,
            "nvmlDeviceGetCount_v2": count or gives(len(gpus)),
            "nvmlDeviceGetHandleByIndex_v2": self._open,
            "nvmlSystemGetDriverVersion": says(driver_version),
            "nvmlSystemGetCudaDriverVersion": gives(13000),
        }

    def __getattr__(self, name: str) -> Function:
        known = {call for gpu in self._everyone() for call in gpu.functions}
        if name not in self._system and name not in known | BASIC:
            raise AttributeError(name)

        def function(*arguments: Any) -> int:
            self.calls.append(name)
            if name in self._system:
                return self._system[name](*arguments)
            handle, *rest = arguments
            return BY_ADDRESS[address(handle)].answer(name, *rest)

        return function

    def _everyone(self) -> Iterator[Gpu]:
        for gpu in self._gpus:
            yield gpu
            yield from filter(None, gpu.slots or ())

    def _start(self, _flags: int) -> int:
        self.running += not self._init
        return self._init

    def _stop(self) -> int:
        self.running -= 1
        return 0

    def _open(self, index: Any, pointer: Any) -> int:
        gpu = self._gpus[index.value]
        return gpu.opens or hand_out(pointer, gpu)


BASIC = {
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetMaxMigDeviceCount",
    "nvmlDeviceGetMigDeviceHandleByIndex",
}
BY_ADDRESS: dict[int, Gpu] = {}  # handles are pointers that only the driver follows


@contextmanager
def loaded(library: Library) -> Iterator[Library]:
    """Let pynvml find this library instead of the real one."""
    before = nvml.nvmlLib
    nvml._nvmlGetFunctionPointer_cache.clear()
    nvml.nvmlLib = library
    try:
        yield library
    finally:
        nvml._nvmlGetFunctionPointer_cache.clear()
        nvml.nvmlLib = before
        BY_ADDRESS.clear()


def gives(*values: Any) -> Function:
    """Write these values through the last pointers."""

    def function(*arguments: Any) -> int:
        for pointer, value in zip(arguments[-len(values) :], values, strict=True):
            pointer._obj.value = value
        return 0

    return function


def says(text: str) -> Function:
    """Write this text into the buffer."""

    def function(*arguments: Any) -> int:
        next(one for one in arguments if isinstance(one, ctypes.Array)).value = text.encode()
        return 0

    return function


def fills(**members: Any) -> Function:
    """Write these members of a struct."""

    def function(*arguments: Any) -> int:
        for name, value in members.items():
            setattr(arguments[-1]._obj, name, value)
        return 0

    return function


def refuses(code: int) -> Function:
    """Return a code, and nothing else."""
    return lambda *_arguments: code


def address(handle: Any) -> int:
    """Read the address that a handle is."""
    return int(ctypes.cast(handle, ctypes.c_void_p).value or 0)


def hand_out(pointer: Any, gpu: Gpu) -> int:
    """Write a handle of a GPU through a pointer to one; each time it is another."""
    number = 0x1000 + len(BY_ADDRESS)
    BY_ADDRESS[number] = gpu
    word = ctypes.c_void_p(number)
    ctypes.memmove(ctypes.addressof(pointer._obj), ctypes.addressof(word), ctypes.sizeof(word))
    return 0
