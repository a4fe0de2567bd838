"""Writes the text file that the fake NVML answers from: `source/table.h` says what can stand in it.

    fake.driver("580.159.04")
    gpu = fake.gpu(0, "GPU-a", name="NVIDIA H200")
    gpu.says("nvmlDeviceGetPowerUsage", 123_457)
    gpu.says("nvmlDeviceGetClockInfo(1)", 1515)
    gpu.says("nvmlDeviceGetMemoryInfo_v2", {"total": 9, "used": 5})
    gpu.field(186, 683_069)
    gpu.fails("nvmlDeviceGetPowerUsage", 15, after=3)
    gpu.hangs("nvmlDeviceGetTemperatureV")
    fake.write()

A running process sees the machine change at its next call after `write`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Number = int | float
Word = Number | str | bytes
Values = Word | tuple[Word, ...] | Mapping[str, Word] | Iterable[Mapping[str, Word]]
FieldType = Literal["double", "uint", "ulong", "ull", "sll", "int", "ushort"]

EVERYTHING = "*"
FIELDS = "nvmlDeviceGetFieldValues"
METRICS = "nvmlGpmMetricsGet"
XID, MIG_CHANGED = 0x8, 0x100  # nvml.h, nvmlEventTypeXidCriticalError, nvmlEventMigConfigChange


@dataclass
class Part:
    """Who answers: the library, a GPU or an instance. A later word of a call replaces a former."""

    who: str
    lines: dict[tuple[str, str], str] = field(default_factory=dict)

    def says(self, call: str, values: Values) -> None:
        """Answer a call: a number, several, a text, a struct's members, or a list of structs."""
        self._line(call, "answer", written(values))

    def fails(self, call: str, code: int, *, after: int = 0) -> None:
        """Return a code for a call, once it was made so often. `*` is every call."""
        self._line(call, "fault", f"{since(after)}error {code}")

    def hangs(self, call: str, *, after: int = 0) -> None:
        """Never return from a call."""
        self._line(call, "fault", f"{since(after)}hang")

    def slow(self, call: str, milliseconds: int) -> None:
        """Take so much longer for a call."""
        self._line(call, "delay", f"slow {milliseconds}")

    def recovers(self, call: str) -> None:
        """End what `fails` or `hangs` began."""
        self.lines.pop((call, "fault"), None)

    def recover(self) -> None:
        """End all that `fails` and `hangs` began."""
        self.lines = {key: line for key, line in self.lines.items() if key[1] != "fault"}

    def _line(self, call: str, manner: str, text: str) -> None:
        # A fault wins over an answer, and stands below it in the file.
        self.lines[call, manner] = f"{self.who} {call} {text}"


@dataclass
class Device(Part):
    """A GPU, or an instance of one."""

    def field(self, number: int, value: Number, kind: FieldType = "ull", scope: int = 0) -> None:
        """Answer one field, by the number that this driver knows it by."""
        members: dict[str, Word] = {kind: value}
        self.says(f"{FIELDS}({number},{scope})", members)

    def gpm(self, number: int, value: float) -> None:
        """Give a metric of GPM between any two samples; the device then supports GPM."""
        self.says("nvmlGpmQueryDeviceSupport", {"isSupportedDevice": 1})
        self.says(f"{METRICS}({number})", float(value))

    def ring(self, kind: int, samples: Iterable[tuple[int, int]]) -> None:
        """Fill a ring buffer (nvmlSamplingType_t) with Unix microseconds and unsigned numbers."""
        entries = [{"timeStamp": time_us, "uint": value} for time_us, value in samples]
        self.says(f"nvmlDeviceGetSamples({kind})", entries)


@dataclass
class Gpu(Device):
    """A GPU: its identity is what a real one always says."""

    instances: dict[int, Device] = field(default_factory=dict)  # by slot

    def loses(self, code: int = 15) -> None:
        """Fall off the bus: every call returns this code."""
        self.fails(EVERYTHING, code)

    def partitioned(self, slots: Mapping[int, str], name: str = "") -> None:
        """Have MIG on, with instances of these UUIDs in these slots, and no others."""
        self.says("nvmlDeviceGetMigMode", (1, 1))
        self.says("nvmlDeviceGetMaxMigDeviceCount", 7)
        self.instances = {slot: self._instance(slot, uuid, name) for slot, uuid in slots.items()}

    def _instance(self, slot: int, uuid: str, name: str) -> Device:
        instance = Device(f"{self.who}.{slot}")
        instance.says("nvmlDeviceGetUUID", uuid)
        instance.says("nvmlDeviceGetName", name)
        instance.says("nvmlDeviceGetGpuInstanceId", 7 + slot)  # which is not its slot
        instance.says("nvmlDeviceGetComputeInstanceId", 0)
        return instance


class FakeNvml:
    """A machine: `environ` makes a process that is started with it find this driver."""

    def __init__(self, path: Path, library: Path) -> None:
        found = [str(library), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        self.environ = {"FAKE_NVML": str(path), "LD_LIBRARY_PATH": ":".join(found)}
        self.system = Part("system")
        self.gpus: dict[int, Gpu] = {}
        self._path = path
        self._events: list[str] = []
        self._written_ns = 0
        self.driver("580.159.04")

    def driver(self, version: str, cuda: int = 13000) -> None:
        """Say which driver this is."""
        self.system.says("nvmlSystemGetDriverVersion", version)
        self.system.says("nvmlSystemGetNVMLVersion", f"{cuda // 1000}.{version}")
        self.system.says("nvmlSystemGetCudaDriverVersion", cuda)

    def gpu(self, index: int, uuid: str, name: str | bytes = "NVIDIA H200") -> Gpu:
        """Put in a GPU, with what a real one says of itself and nothing else."""
        gpu = self.gpus[index] = Gpu(f"gpu {index}")
        gpu.says("nvmlDeviceGetUUID", uuid)
        gpu.says("nvmlDeviceGetName", name)
        gpu.says("nvmlDeviceGetMinorNumber", index)
        gpu.says("nvmlDeviceGetPciInfo_v3", {"busId": f"00000000:{index + 59:02X}:00.0"})
        gpu.says("nvmlDeviceGetArchitecture", 9)
        gpu.says("nvmlDeviceGetCudaComputeCapability", (9, 0))
        gpu.says("nvmlDeviceGetMigMode", (0, 0))
        gpu.says("nvmlDeviceGetSupportedEventTypes", 0xFF9F)
        return gpu

    def happens(self, gpu: int, kind: int, **members: int) -> None:
        """Let an event of a GPU happen: `eventData`, `gpuInstanceId`, `computeInstanceId`."""
        self._event(f"gpu {gpu}", {"eventType": kind, **members})

    def happens_to_driver(self, kind: int, gpu_id: int) -> None:
        """Let an event of the system happen."""
        self._event("system", {"eventType": kind, "gpuId": gpu_id})

    def write(self) -> None:
        """Make all of it true, at once."""
        parts = [self.system, *self.gpus.values()]
        parts += [part for gpu in self.gpus.values() for part in gpu.instances.values()]
        lines = [line for part in parts for line in arranged(part)]
        new = self._path.with_suffix(".new")
        new.write_text("\n".join([*lines, *self._events, ""]))
        # The clock of a file system is coarse: without this two writes could look like one.
        self._written_ns = max(time.time_ns(), self._written_ns + 1)
        os.utime(new, ns=(self._written_ns, self._written_ns))
        new.replace(self._path)

    def _event(self, who: str, members: Mapping[str, Word]) -> None:
        self._events.append(f"{who} event({len(self._events) + 1}) {written(members)}")


def arranged(part: Part) -> list[str]:
    """Give the lines of a part: faults below the answers, for the last line wins."""
    order = {"answer": 0, "delay": 1, "fault": 2}
    return [part.lines[key] for key in sorted(part.lines, key=lambda key: order[key[1]])]


def since(after: int) -> str:
    """Write from which call on a line holds."""
    return f"after {after} " if after else ""


def written(values: Values) -> str:
    """Write what a call answers."""
    if isinstance(values, Number | str | bytes):
        return word(values)
    if isinstance(values, Mapping):
        return " ".join(f"{name}={word(value)}" for name, value in values.items())
    if isinstance(values, tuple):
        return " ".join(map(word, values))
    return " ; ".join(map(written, values)) or "none"


def word(value: Word) -> str:
    """Write one value; text in quotes, with what is not printable as \\xNN."""
    if isinstance(value, Number):
        return repr(value)
    data = value.encode() if isinstance(value, str) else value
    special = b'"\\'
    text = (chr(b) if 32 <= b < 127 and b not in special else f"\\x{b:02x}" for b in data)
    return f'"{"".join(text)}"'
