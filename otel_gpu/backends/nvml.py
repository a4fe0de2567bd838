"""The real driver, through NVML; the only file that imports pynvml.

It reads and never writes: nothing is asked but `nvmlDeviceGet...`, after NVML was started and the
GPUs were counted. Every error of pynvml's becomes a return code here, and goes no further.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pynvml  # noqa: TID251 - this is that one file

from otel_gpu.backends import gpm, identity
from otel_gpu.backends.binding import BindListener
from otel_gpu.backends.field_ids import field_id
from otel_gpu.backends.gpm import Gpm
from otel_gpu.backends.listening import Listener
from otel_gpu.backends.processes import host_pids, named
from otel_gpu.backends.remedies import REMEDIES
from otel_gpu.backends.values import field_answer, plain, union_member
from otel_gpu.model import Answer, BackendError, Code, Device, Event, Query, Refused, System

nvml: Any = pynvml  # nvidia-ml-py has no types

LIBRARY = "libnvidia-ml.so.1"
READS = "nvmlDeviceGet"
FIELDS = "nvmlDeviceGetFieldValues"
SAMPLES = "nvmlDeviceGetSamples"
PEERS = "nvmlDeviceGetP2PStatus"  # asked of one GPU, it is about this one and each other
PROCESSES = frozenset(
    {
        "nvmlDeviceGetComputeRunningProcesses",
        "nvmlDeviceGetGraphicsRunningProcesses",
        "nvmlDeviceGetMPSComputeRunningProcesses",
        "nvmlDeviceGetProcessesUtilizationInfo",
        "nvmlDeviceGetProcessUtilization",
    }
)
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
        self._gpm = Gpm(GpmDriver(self._call))
        self._listener = Listener(self._call)
        self._binding = BindListener(self._call, system_events())
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
        gpus = [one.uuid for one in found if isinstance(one, Device) and not one.is_instance]
        self._binding.listen()
        unheard = self._listener.listen({uuid: self._handles[uuid] for uuid in gpus})
        return System(
            driver_version=self._driver_version,
            nvml_version=self._fact("", "nvmlSystemGetNVMLVersion") or "",
            # The _v2 of this function loads CUDA into the process, which no agent should.
            cuda_version=identity.cuda_version(self._fact("", "nvmlSystemGetCudaDriverVersion")),
            library=library(),
            devices=tuple(one for one in found if isinstance(one, Device)),
            refused=tuple(one for one in found if isinstance(one, Refused)),
            unheard=unheard,
        )

    def ask(self, uuid: str, queries: Sequence[Query]) -> list[Answer]:
        """Ask one GPU; its fields travel in one call, and so do its GPM metrics.

        A UUID that was not enumerated is code 28 (GPU not found) for each query.
        """
        handle = self._handles.get(uuid)
        if handle is None:
            code = Code.GPU_NOT_FOUND if self._started else Code.UNINITIALIZED
            return [Answer(code)] * len(queries)
        batched = self._fields(uuid, handle, [query for query in queries if query.call == FIELDS])
        if profiled := [query for query in queries if query.call == gpm.CALL]:
            read = self._gpm.ask(uuid, handle, [query.args[0] for query in profiled])
            batched |= {query: read[query.args[0]] for query in profiled}
        return [batched.get(query) or self._answer(uuid, handle, query) for query in queries]

    def events(self) -> list[Event]:
        """Give what the driver told of since the last call: Xids, MIG changes, GPUs that leave."""
        return [*self._listener.poll(), *self._binding.poll()]

    def close(self) -> None:
        """Forget every handle and shut NVML down, so that no device file stays open."""
        self._handles.clear()
        self._gpm.close()
        self._listener.close()
        self._binding.close()
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
        facts = self._facts(uuid.value, handle.value)
        ask = partial(self._field, uuid.value, handle.value)
        gpu = identity.equipped(identity.gpu(uuid.value, index, facts), facts, ask)
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
                found.append(identity.instance(gpu, uuid, slots, self._facts(uuid, part.value)))
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
        if query.call == PEERS:
            return self._peers(uuid, handle, *query.args)
        if query.call in PROCESSES and not host_pids():
            return Answer(Code.PID_NAMESPACE)
        answer = self._call(uuid, query.call, handle, *query.args)
        if query.call == SAMPLES:  # hundreds of numbers, plain as they are
            return answer
        value = plain(answer.value)
        if answer.ok and query.call in PROCESSES:
            value = named(value)
        return Answer(answer.code, value)

    def _peers(self, uuid: str, handle: Any, capability: int) -> Answer:
        """Ask what this GPU can do with each other one; those that refuse are left out."""
        asked = {
            other: self._call(uuid, PEERS, handle, peer, capability)
            for other, peer in self._handles.items()
            if other != uuid and not other.startswith("MIG-")
        }
        known = {other: answer.value for other, answer in asked.items() if answer.ok}
        if known:
            return Answer(Code.SUCCESS, known)
        codes = [answer.code for answer in asked.values()] or [Code.NOT_SUPPORTED]
        return Answer(codes[0])  # a GPU that is alone has answered nothing

    def _field(self, uuid: str, handle: Any, number: int) -> Any:
        (answer,) = self._fields(uuid, handle, [Query(FIELDS, (number, 0))]).values()
        return answer.value

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


def system_events() -> Callable[[int], Any] | None:
    """Give what makes an array of so many system events; older versions of pynvml have none."""
    event = getattr(nvml, "c_nvmlSystemEventData_v1_t", None)
    return None if event is None else lambda count: (event * count)()


class GpmDriver:
    """The GPM functions of NVML, through the backend's own `call`."""

    def __init__(self, call: Callable[..., Answer]) -> None:
        self._call = call

    def support(self, uuid: str, handle: Any) -> int:
        """Give 0 where the GPU has GPM at all."""
        asked = self._call(uuid, "nvmlGpmQueryDeviceSupport", handle)
        if asked.ok and not asked.value.isSupportedDevice:
            return Code.NOT_SUPPORTED
        return asked.code

    def take(self, uuid: str, handle: Any) -> Answer:
        """Take a sample into memory of its own."""
        room = self._call(uuid, "nvmlGpmSampleAlloc")
        if not room.ok:
            return room
        taken = self._call(uuid, "nvmlGpmSampleGet", handle, room.value)
        if not taken.ok:
            self.free(room.value)
        return taken

    def between(self, uuid: str, first: Any, second: Any, ids: Sequence[int]) -> list[Answer]:
        """Ask for several metrics at once; each entry has its own return code."""
        request = nvml.c_nvmlGpmMetricsGet_t()
        request.version = nvml.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics = len(ids)
        request.sample1, request.sample2 = first, second
        for entry, number in zip(request.metrics, ids, strict=False):
            entry.metricId = number
        got = self._call(uuid, gpm.CALL, request)
        if not got.ok:
            return [Answer(got.code)] * len(ids)
        entries = (request.metrics[place] for place in range(len(ids)))
        return [Answer(entry.nvmlReturn, entry.value) for entry in entries]

    def free(self, sample: Any) -> None:
        """Give the memory back; needs no GPU."""
        self._call("", "nvmlGpmSampleFree", sample)


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
    except (UnicodeDecodeError, IndexError, MemoryError):  # no text; a count that cannot be
        return Answer(Code.NO_DATA)


def memory_v2(handle: Any) -> Any:
    """`nvmlDeviceGetMemoryInfo_v2`, which pynvml hides behind an argument of the first version."""
    return nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)


def samples(handle: Any, kind: int, since_us: int) -> list[list[Any]]:
    """`nvmlDeviceGetSamples`: [Unix microseconds, value] for each sample after `since_us`."""
    value_type, entries = nvml.nvmlDeviceGetSamples(handle, kind, since_us)
    member = union_member(value_type)
    if not member:
        raise nvml.NVMLError(Code.ARGUMENT_VERSION_MISMATCH)
    return [[entry.timeStamp, getattr(entry.sampleValue, member)] for entry in entries]


def gsp_firmware(handle: Any) -> bytes:
    """`nvmlDeviceGetGspFirmwareVersion`, in the one form that every version of pynvml has."""
    text = ctypes.create_string_buffer(0x40)  # NVML_GSP_FIRMWARE_VERSION_BUF_SIZE
    nvml.nvmlDeviceGetGspFirmwareVersion(handle, text)
    return text.value


def whole_gpu(handle: Any) -> Any:
    """Describe the MIG profile that is the whole GPU: it says how many engines there are."""
    return nvml.nvmlDeviceGetGpuInstanceProfileInfo(handle, nvml.NVML_GPU_INSTANCE_PROFILE_7_SLICE)


def unrepairable(handle: Any) -> int:
    """`nvmlDeviceGetUnrepairableMemoryFlag_v1`: 1 when memory is damaged beyond repair.

    In nvml.h and on an H200 the flag is all that the struct holds. pynvml 13.615 looks for it
    behind a version that is not there, and always gives 0.
    """
    flag = ctypes.c_uint()
    name = "nvmlDeviceGetUnrepairableMemoryFlag_v1"
    function = nvml._nvmlGetFunctionPointer(name)  # noqa: SLF001 - the only way past its wrapper
    if code := function(handle, ctypes.byref(flag)):
        raise nvml.NVMLError(code)
    return flag.value


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
    SAMPLES: samples,
    "nvmlDeviceGetGspFirmwareVersion": gsp_firmware,
    "nvmlDeviceGetUnrepairableMemoryFlag_v1": unrepairable,
    identity.WHOLE_GPU: whole_gpu,
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
