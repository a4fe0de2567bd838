"""The real driver, through NVML; the only file that imports pynvml.

It reads and never writes: nothing is asked but `nvmlDeviceGet...`, after NVML was started and the
GPUs were counted. Every error of pynvml's becomes a return code here, and goes no further.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pynvml  # noqa: TID251 - this is that one file

from otel_gpu.backends import identity
from otel_gpu.backends.field_ids import field_id
from otel_gpu.backends.remedies import REMEDIES
from otel_gpu.backends.values import field_answer, plain, union_answer
from otel_gpu.model import Answer, BackendError, Code, Device, Query, Refused, System

nvml: Any = pynvml  # nvidia-ml-py has no types

LIBRARY = "libnvidia-ml.so.1"
READS = "nvmlDeviceGet"
FIELDS = "nvmlDeviceGetFieldValues"
MISMATCH = getattr(nvml, "NVMLLibraryMismatchError", nvml.NVMLError)  # not in older versions


class NvmlBackend:
    """Asks the NVIDIA driver of this machine.

    `on_call` gets the UUID of the GPU, NVML's index as text while the UUID is not known, or "" for
    a call that is about no GPU. `exclude` of `open` takes UUIDs and such indices: by the index, a
    GPU that hangs is left out without being touched.
    """

    def __init__(self) -> None:
        self.on_call: Callable[[str, str], None] = lambda _uuid, _call: None
        self._handles: dict[str, Any] = {}
        self._driver_version = ""
        self._started = False

    def open(self, exclude: frozenset[str] = frozenset()) -> System:
        """Start NVML and enumerate the GPUs and their MIG instances, each with a new handle.

        Raises BackendError, with the code of nvml.h and what to do about it.
        """
        self.close()
        self._start()
        found: list[Device | Refused] = []
        for index in range(self._count()):
            if str(index) not in exclude:
                found += self._enumerate(index, exclude)
        return System(
            driver_version=self._driver_version,
            nvml_version=self._fact("", "nvmlSystemGetNVMLVersion") or "",
            # The _v2 of this function loads CUDA into the process, which no agent should.
            cuda_version=identity.cuda_version(self._fact("", "nvmlSystemGetCudaDriverVersion")),
            library=library(),
            devices=tuple(one for one in found if isinstance(one, Device)),
            refused=tuple(one for one in found if isinstance(one, Refused)),
        )

    def ask(self, uuid: str, queries: Sequence[Query]) -> list[Answer]:
        """Ask one GPU; its fields (`nvmlDeviceGetFieldValues`) travel in one call.

        A UUID that was not enumerated is code 28 (GPU not found) for each query.
        """
        handle = self._handles.get(uuid)
        if handle is None:
            code = Code.GPU_NOT_FOUND if self._started else Code.UNINITIALIZED
            return [Answer(code)] * len(queries)
        fields = self._fields(uuid, handle, [query for query in queries if query.call == FIELDS])
        return [fields.get(query) or self._answer(uuid, handle, query) for query in queries]

    def close(self) -> None:
        """Forget every handle and shut NVML down, so that no device file stays open."""
        self._handles.clear()
        if self._started:
            self._started = False
            self._call("", "nvmlShutdown")

    def _start(self) -> None:
        # Without the flag, a machine that has a driver and no GPU looks like one without a driver.
        code = self._call("", "nvmlInitWithFlags", nvml.NVML_INIT_FLAG_NO_GPUS).code
        if code:
            raise refusal("NVML did not start", code)
        self._started = True
        self._driver_version = self._fact("", "nvmlSystemGetDriverVersion") or ""

    def _count(self) -> int:
        count = self._call("", "nvmlDeviceGetCount")
        if not count.ok:
            raise refusal("NVML did not count the GPUs", count.code)
        return int(count.value)

    def _enumerate(self, index: int, exclude: frozenset[str]) -> list[Device | Refused]:
        """Give a GPU and its instances, or that it does not open, or nothing when left out."""
        handle = self._call(str(index), "nvmlDeviceGetHandleByIndex", index)
        if not handle.ok:
            return [Refused(index, handle.code)]
        uuid = self._call(str(index), "nvmlDeviceGetUUID", handle.value)
        if not uuid.ok:
            return [Refused(index, uuid.code)]
        if uuid.value in exclude:
            return []
        self._handles[uuid.value] = handle.value
        gpu = identity.gpu(uuid.value, index, self._facts(uuid.value, handle.value))
        return [gpu, *self._instances(gpu, handle.value, exclude)]

    def _instances(self, gpu: Device, handle: Any, exclude: frozenset[str]) -> list[Device]:
        fact = self._facts(gpu.uuid, handle)
        current, *_ = fact("nvmlDeviceGetMigMode") or (0,)
        slots = fact("nvmlDeviceGetMaxMigDeviceCount") or 0 if current else 0
        found = []
        for slot in range(slots):
            part = self._call(gpu.uuid, "nvmlDeviceGetMigDeviceHandleByIndex", handle, slot)
            if not part.ok:  # an empty slot, with others behind it
                continue
            uuid = self._fact(gpu.uuid, "nvmlDeviceGetUUID", part.value)
            if uuid and uuid not in exclude:
                self._handles[uuid] = part.value
                found.append(identity.instance(gpu, uuid, self._facts(uuid, part.value)))
        return found

    def _fields(self, uuid: str, handle: Any, queries: list[Query]) -> dict[Query, Answer]:
        """Ask every field at once, each by the number that this driver knows it by."""
        numbers = {query: field_id(query.args[0], self._driver_version) for query in queries}
        asked = {query: number for query, number in numbers.items() if number is not None}
        answers = dict.fromkeys(numbers, Answer(Code.NOT_SUPPORTED))
        if asked:
            ids = [(number, query.args[1]) for query, number in asked.items()]
            got = self._call(uuid, FIELDS, handle, ids)
            read = map(field_answer, got.value) if got.ok else [Answer(got.code)] * len(ids)
            answers |= zip(asked, read, strict=True)
        return answers

    def _answer(self, uuid: str, handle: Any, query: Query) -> Answer:
        if not query.call.startswith(READS):
            return Answer(Code.FUNCTION_NOT_FOUND)
        answer = self._call(uuid, query.call, handle, *query.args)
        return Answer(answer.code, plain(answer.value))

    def _facts(self, uuid: str, handle: Any) -> identity.Fact:
        return lambda name: self._fact(uuid, name, handle)

    def _fact(self, uuid: str, name: str, *arguments: Any) -> Any:
        answer = self._call(uuid, name, *arguments)
        return plain(answer.value) if answer.ok else None

    def _call(self, uuid: str, name: str, *arguments: Any) -> Answer:
        """Call a function of pynvml; the value is as pynvml gave it."""
        function = CALLS.get(name) or getattr(nvml, name, None)
        if function is None:
            return Answer(Code.FUNCTION_NOT_FOUND)
        self.on_call(uuid, name)
        return attempt(function, *arguments)


def attempt(function: Callable[..., Any], *arguments: Any) -> Answer:
    """Call, and turn each of pynvml's ways to fail into a return code of nvml.h."""
    try:
        return Answer(Code.SUCCESS, function(*arguments))
    except nvml.NVMLError as error:
        # Where there is nothing in a list, pynvml takes the driver's "success" for an error.
        return Answer(error.value or Code.NOT_FOUND)
    except MISMATCH:  # pynvml's own word for a function that this library does not have
        return Answer(Code.FUNCTION_NOT_FOUND)
    except (TypeError, ctypes.ArgumentError):  # this pynvml knows the function in another form
        return Answer(Code.INVALID_ARGUMENT)
    except UnicodeDecodeError:  # text that no one can read
        return Answer(Code.NO_DATA)


def memory_v2(handle: Any) -> Any:
    """`nvmlDeviceGetMemoryInfo_v2`, which pynvml hides behind an argument of the first version."""
    return nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)


def samples(handle: Any, kind: int, since_us: int) -> list[list[Any]]:
    """`nvmlDeviceGetSamples`: [Unix microseconds, value] for each sample after `since_us`."""
    value_type, entries = nvml.nvmlDeviceGetSamples(handle, kind, since_us)
    read = [union_answer(entry.sampleValue, value_type) for entry in entries]
    if not all(answer.ok for answer in read):
        raise nvml.NVMLError(Code.ARGUMENT_VERSION_MISMATCH)
    return [[entry.timeStamp, one.value] for entry, one in zip(entries, read, strict=True)]


def gsp_firmware(handle: Any) -> bytes:
    """`nvmlDeviceGetGspFirmwareVersion`, in the one form that every version of pynvml has."""
    text = ctypes.create_string_buffer(0x40)  # NVML_GSP_FIRMWARE_VERSION_BUF_SIZE
    nvml.nvmlDeviceGetGspFirmwareVersion(handle, text)
    return text.value


def filled(name: str, *structs: str) -> Callable[[Any], Any]:
    """Make the call of a function that fills a struct, with the newest one that both sides know."""

    def call(handle: Any) -> Any:
        for struct in filter(None, (getattr(nvml, known, None) for known in structs)):
            value = struct()
            answer = attempt(getattr(nvml, name), handle, ctypes.byref(value))
            if answer.ok:
                return value
            if answer.code != Code.ARGUMENT_VERSION_MISMATCH:
                raise nvml.NVMLError(answer.code)
        raise nvml.NVMLError(Code.ARGUMENT_VERSION_MISMATCH)

    return call


CALLS: Mapping[str, Callable[..., Any]] = {
    "nvmlDeviceGetMemoryInfo_v2": memory_v2,
    "nvmlDeviceGetSamples": samples,
    "nvmlDeviceGetGspFirmwareVersion": gsp_firmware,
    "nvmlDeviceGetGpuFabricInfoV": filled(
        "nvmlDeviceGetGpuFabricInfoV", "c_nvmlGpuFabricInfo_v3_t", "c_nvmlGpuFabricInfo_v2_t"
    ),
    "nvmlDeviceGetSramEccErrorStatus": filled(
        "nvmlDeviceGetSramEccErrorStatus", "c_nvmlEccSramErrorStatus_v1_t"
    ),
}
"""Functions that pynvml does not offer in the plain form, handle and numbers in, value out."""


def refusal(what: str, code: int) -> BackendError:
    """Say that the driver cannot be used, with what more can be found out about it."""
    words = str(nvml.NVMLError(code)).rstrip(".")
    more = EVIDENCE[code]() if code in EVIDENCE else ""
    return BackendError(code, f"{what}: {words} (code {code}{more})", REMEDIES.get(code, ""))


def loading() -> str:
    """Load the library once more, for what the loader says, which pynvml keeps to itself."""
    try:
        ctypes.CDLL(LIBRARY)
    except OSError as error:
        return f"; {error}"
    return ""


def versions() -> str:
    """Name the two sides of a mismatch."""
    module = Path("/sys/module/nvidia/version")
    loaded = module.read_text().strip() if module.exists() else "unknown"
    return f"; library {library() or 'unknown'}, kernel module {loaded}"


EVIDENCE: Mapping[int, Callable[[], str]] = {
    Code.LIBRARY_NOT_FOUND: loading,
    Code.LIB_RM_VERSION_MISMATCH: versions,
}


def library() -> str:
    """Name the file that NVML was loaded from, which only the kernel knows for sure."""
    return identity.mapped_library(Path("/proc/self/maps").read_text(), LIBRARY)
