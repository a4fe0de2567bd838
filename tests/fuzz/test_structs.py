"""A driver that scribbles into the structs that it is given: what pynvml reads there stays data.

Below pynvml stands a library whose functions write random bytes through every pointer, all of a
struct or only its beginning, and return random codes. What comes out must be plain values that
travel to the agent, and what the agent makes of them must hold as everywhere (`judging.py`).
"""

from __future__ import annotations

import ctypes
import marshal
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_gpu.backends.nvml import NvmlBackend, nvml
from otel_gpu.backends.values import field_answer, plain
from otel_gpu.catalog import CATALOG
from otel_gpu.ledger import Batch, Page, fold
from otel_gpu.model import Answer, Device, Query, Snapshot
from otel_gpu.sweep import applicable, questions
from tests.backends.library import Function, Gpu, Library, loaded
from tests.fuzz.judging import Judge

pytestmark = pytest.mark.thorough

SHARES, MACHINES, SWEEPS = 5, 30, 3


def points_to_text(kind: Any) -> bool:
    """Whether a struct holds the address of a text, which chance must not choose."""
    if issubclass(kind, ctypes.Array):
        return points_to_text(kind._type_)
    members = [member for _, member, *_ in getattr(kind, "_fields_", ())]
    return kind is ctypes.c_char_p or any(map(points_to_text, members))


KINDS = sorted(
    {
        kind
        for kind in vars(nvml).values()
        if isinstance(kind, type) and issubclass(kind, ctypes.Structure | ctypes.Union)
        if hasattr(kind, "_fields_") and not points_to_text(kind)
    },
    key=lambda kind: kind.__name__,
)
SMALL_NUMBERS = (0, 0, 1, 1, 2, 3, 7, 18, 36, 100, 255)
LARGEST = 40_000  # pynvml makes room for as many entries as a driver says there are
CODES = (*(0,) * 12, 3, 3, 4, 6, 7, 9, 15, 21, 25, 27, 999, 1234)
INSUFFICIENT_SIZE = 7  # then pynvml makes as much room as it is told to
CALLS = sorted({query.call for metric in CATALOG for query in metric.read.queries})
FACTS = (
    *("Name", "MinorNumber", "Serial", "PciInfo_v3", "VbiosVersion", "GspFirmwareVersion"),
    *("BoardPartNumber", "Architecture", "CudaComputeCapability", "NumFans", "C2cModeInfoV"),
    *("GpuInstanceProfileInfo", "FieldValues", "GpuInstanceId", "ComputeInstanceId"),
    *("ComputeRunningProcesses_v3", "GraphicsRunningProcesses_v3", "SupportedEventTypes"),
    *("MPSComputeRunningProcesses_v3", "RemappedRows_v2", "FanSpeed_v2", "MemoryInfo"),
)


class Scribbler:
    """Makes functions that write what the chance has them write."""

    def __init__(self, seed: object) -> None:
        self._chance = random.Random(f"{seed}")  # noqa: S311 - it is to be the same each time

    def function(self) -> Function:
        return self._answer

    def _answer(self, *arguments: Any) -> int:
        code = self._chance.choice(CODES)
        for argument in arguments:
            self._write(getattr(argument, "_obj", argument), code)
        return code

    def _write(self, target: Any, code: int) -> None:
        if isinstance(target, ctypes._SimpleCData):
            if isinstance(target.value, int) and self._is_pointed_to(target):
                self._number(target, code)
        elif isinstance(target, ctypes.Structure | ctypes.Array):
            self._bytes(target, code)

    def _is_pointed_to(self, target: Any) -> bool:
        return not isinstance(target, ctypes.c_void_p)

    def _number(self, target: Any, code: int) -> None:
        is_large = code != INSUFFICIENT_SIZE and self._chance.random() < 0.05
        target.value = LARGEST if is_large else self._chance.choice(SMALL_NUMBERS)

    def _bytes(self, target: Any, code: int) -> None:
        size = ctypes.sizeof(target)
        draw = self._chance.random()
        if draw < 0.1:
            return  # it says success and wrote nothing
        if draw < 0.3:
            size = self._chance.randrange(size + 1)  # an older driver's struct is shorter
        is_tame = draw > 0.7 or code == INSUFFICIENT_SIZE
        data = self._tame(size) if is_tame else self._chance.randbytes(size)
        ctypes.memmove(ctypes.addressof(target), data, size)
        for entry in target if isinstance(target, ctypes.Array) else ():
            if isinstance(entry, nvml.c_nvmlFieldValue_t) and self._chance.random() < 0.8:
                entry.nvmlReturn, entry.valueType = 0, self._chance.randrange(8)

    def _tame(self, size: int) -> bytes:
        """Make members that are small numbers, as they are when all is well."""
        words = (self._chance.choice(SMALL_NUMBERS) for _ in range(size // 4 + 1))
        return b"".join(word.to_bytes(4, "little") for word in words)[:size]


def machine(seed: object) -> Gpu:
    scribbler = Scribbler(seed)
    names = {*CALLS, *(f"nvmlDeviceGet{fact}" for fact in FACTS)}
    return Gpu("GPU-a", {name: scribbler.function() for name in sorted(names)})


@pytest.mark.parametrize("share", range(SHARES))
def test_whatever_is_written_into_its_structs_the_backend_gives_plain_answers(share: int) -> None:
    for number in range(MACHINES):
        seed = f"{share}/{number}"
        try:
            assert swept(machine(seed)) == []
        except BaseException as error:
            error.add_note(f"seed {seed!r}")
            raise


def swept(gpu: Gpu) -> list[str]:
    """Enumerate, and sweep a few times; give what is wrong with what would be published."""
    found: list[str] = []
    with loaded(Library(gpu)):
        backend = NvmlBackend()
        for device in backend.open().devices:
            page, judge = Page(), Judge(CATALOG)
            for sweep in range(1, SWEEPS):
                page = swept_once(backend, device, page, sweep)
                snapshot = Snapshot(
                    devices={device.uuid: device},
                    readings=tuple(page.readings.values()),
                    gaps=tuple(gap for several in page.gaps.values() for gap in several),
                )
                found += judge.complaints(snapshot, {device.uuid}, anew=True)
        backend.close()
    return found


def swept_once(backend: NvmlBackend, device: Device, page: Page, sweep: int) -> Page:
    metrics = applicable(CATALOG, device)
    asked = questions(metrics, device, page, float(sweep))
    answers = travelled(backend.ask(device.uuid, asked))
    heard: dict[Query, Answer] = dict(zip(asked, answers, strict=True))
    return fold(page, Batch(device, sweep * 10**18, float(sweep), heard), metrics, 15.0)


def travelled(answers: list[Answer]) -> list[Answer]:
    """Send answers to the agent and back, as the worker does."""
    data = marshal.dumps([(int(answer.code), answer.value) for answer in answers])
    return [Answer(*one) for one in marshal.loads(data)]  # noqa: S302 - our own bytes


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_any_bytes_in_a_struct_are_plain_values(kind: Any) -> None:
    chance = random.Random(kind.__name__)  # noqa: S311 - it is to be the same each time
    for _ in range(3):
        value = plain(kind.from_buffer_copy(chance.randbytes(ctypes.sizeof(kind))))
        assert isinstance(value, dict)
        assert marshal.loads(marshal.dumps(value)).keys() == value.keys()  # noqa: S302 - our own


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.binary(min_size=64, max_size=64), st.integers(0, 300), st.integers(0, 9) | st.none())
def test_any_bytes_of_a_field_are_an_answer(data: bytes, number: int, kind: int | None) -> None:
    entry = nvml.c_nvmlFieldValue_t.from_buffer_copy(data)
    entry.fieldId = number
    if kind is not None:  # it was served
        entry.nvmlReturn, entry.valueType = 0, kind
    answer = field_answer(entry)
    assert isinstance(answer.code, int)
    assert type(answer.value) in {int, float, type(None)}
