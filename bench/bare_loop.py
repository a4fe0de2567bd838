"""The bare loop: what the same readings cost in plain pynvml, written by hand.

The agent promises that one sweep of one H200 with the standard profile costs at most 1.3 times
the CPU of this loop, both measured in one run. The loop makes the NVML reads that the catalog's
core and standard rows need, at their tiers (1 s, 5 s, 60 s, once), each call once however many
metrics use it, and puts the answers in base units into one dict per GPU. It exports nothing.

It is frozen: a baseline that is tuned together with what it measures proves nothing. It changes
only when a core or standard row gains or loses a read, and the changelog then gives both costs.
For the same reason it shares no code with the agent. It needs only nvidia-ml-py (here 13.615)
and a driver from 580.82 on, before which the field ids 269 to 271 were other readings.

Left out is what makes no NVML call: hw.status, classes of Xids, owners, unwrapping of 32-bit
counts, series of states (a state is kept as its code, a change pending as the pending mode);
and what an H200 has not: fans, retired pages, NVLink 5's errors. MIG instances are not read.

    python bench/bare_loop.py --seconds 60 [--gpus 0,1] [--json]
"""

import argparse
import contextlib
import ctypes
import json
import math
import os
import statistics
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pynvml as nvml  # noqa: TID251 - the baseline is pynvml itself

PERIOD_S = {"default": 5.0, "slow": 60.0}  # and "fast", with every tick
DUE = (("fast",), ("fast", "default"), ("fast", "slow"), ("fast", "default", "slow"))
SLACK_S = 0.5  # half a fast period: a tick that comes some ms early is still its tier's tick
UNSUPPORTED = frozenset({2, 3, 4, 13, 25, 26})  # NVML's codes that another try does not change
LAST_ECC_FIELD = 28  # without ECC these succeed and nothing is filled in; with it, no type is
ALL_LINKS = 0xFFFFFFFF  # the scope that sums over a GPU's links
WINDOW_US = 15_000_000  # of the power peak
CONTIGUOUS_US = 100_000  # ring samples stand 20 ms apart; a wider step is a hole
GPM_MIN_S = 0.1  # a closer pair is answered with 0.0 and NaN

Values = dict[str, float]
Call = Callable[["Gpu"], Values]  # one NVML call, and what it says in base units


class Field(NamedTuple):
    id: int
    name: str  # where its value goes
    factor: float = 1  # to the base unit
    scope: int = 0
    member: str = ""  # of the value union; found at the start


def row(first: int, name: str, *ends: str, factor: float = 1, scope: int = 0) -> list[Field]:
    return [Field(first + i, name + end, factor, scope) for i, end in enumerate(ends)]


ERRORS = ("|corrected", "|uncorrected")
PLACES = ("|l1", "|l2", "|dram", "|register_file", "|texture")
LIFETIME, REASON_TIME = "nvidia.gpu.ecc.lifetime_errors", "nvidia.gpu.clock.reason.time"
NVLINK, PCIE = "nvidia.gpu.nvlink", "nvidia.gpu.pcie"
MEMORY_BUSY = "nvidia.gpu.memory_controller.utilization"
FIELDS = {
    "fast": [
        Field(186, "hw.power", 1e-3),
        Field(185, "nvidia.gpu.power.average", 1e-3),
        Field(82, "hw.temperature|memory"),
    ],
    "default": [
        *row(3, "hw.errors", *ERRORS),
        *row(138, f"{NVLINK}.io", "|transmit", "|receive", factor=1024, scope=ALL_LINKS),
        Field(230, "nvidia.gpu.recovery.status"),
        Field(74, f"{REASON_TIME}|sw_power_cap", 1e-9),
        *row(76, REASON_TIME, "|sync_boost", "|board_limit", factor=1e-9),
        *row(269, REASON_TIME, "|sw_thermal", "|hw_thermal", "|hw_power_brake", factor=1e-9),
    ],
    "slow": [
        Field(190, "nvidia.gpu.power.limit|enforced", 1e-3),
        Field(173, f"{PCIE}.errors|correctable"),
        *row(179, f"{PCIE}.errors", "|non_fatal", "|fatal"),
        *row(142, "nvidia.gpu.row_remap.rows", *ERRORS),
        *row(144, "nvidia.gpu.row_remap", ".pending", ".failed"),
        *row(18, LIFETIME, *(place + error for place in PLACES for error in ERRORS)),
        Field(28, f"{LIFETIME}|cbu|uncorrected"),
    ],
}


def link_fields(handle: Any) -> list[Field]:
    """Each link's state (0 inactive, 1 active, 2 sleep, 3 no traffic), and the links' errors."""
    [count] = nvml.nvmlDeviceGetFieldValues(handle, [(91, 0)])
    links = range(0 if count.nvmlReturn else count.value.uiVal)
    states = [Field(165, f"{NVLINK}.link.status|{link}", 1, link) for link in links]
    errors = ((161, "replay"), (162, "recovery"), (163, "crc"))
    return states + [Field(i, f"{NVLINK}.errors|{e}", 1, link) for i, e in errors for link in links]


def offered(handle: Any, fields: Sequence[Field]) -> list[Field]:
    """Of these fields, those that the GPU answers, with the place of their value."""
    members = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
    answers = nvml.nvmlDeviceGetFieldValues(handle, [(f.id, f.scope) for f in fields])
    ecc = False
    with contextlib.suppress(nvml.NVMLError):
        ecc = bool(nvml.nvmlDeviceGetEccMode(handle)[0])
    return [
        field._replace(member=members[answer.valueType if field.id > LAST_ECC_FIELD else 3])
        for field, answer in zip(fields, answers, strict=True)
        if answer.nvmlReturn == 0 and (ecc or field.id > LAST_ECC_FIELD)
    ]


def batch(fields: Sequence[Field]) -> Call:
    ids = [(field.id, field.scope) for field in fields]  # pynvml takes longer over bare ids

    def read(gpu: "Gpu") -> Values:
        values: Values = {}
        answers = nvml.nvmlDeviceGetFieldValues(gpu.handle, ids)
        for (_, name, factor, _, member), answer in zip(fields, answers, strict=True):
            if answer.nvmlReturn == 0:  # a name that stands more than once is summed over links
                raw = getattr(answer.value, member)
                values[name] = values.get(name, 0) + raw * factor
        return values

    return read


def number(name: str, factor: float, function: Callable[..., float], *args: int) -> Call:
    return lambda gpu: {name: function(gpu.handle, *args) * factor}


def pair(names: tuple[str, str], function: Callable[[Any], Sequence[float]]) -> Call:
    return lambda gpu: dict(zip(names, function(gpu.handle), strict=True))


def processes(kind: str) -> Call:
    function = getattr(nvml, f"nvmlDeviceGet{kind}RunningProcesses")
    return lambda gpu: {f"nvidia.gpu.process.active|{kind}": len(function(gpu.handle))}


def utilization(gpu: "Gpu") -> Values:
    rates = nvml.nvmlDeviceGetUtilizationRates(gpu.handle)
    return {"hw.gpu.utilization|general": rates.gpu / 100, MEMORY_BUSY: rates.memory / 100}


def memory(gpu: "Gpu") -> Values:
    info = nvml.nvmlDeviceGetMemoryInfo(gpu.handle, version=nvml.nvmlMemory_v2)
    return {
        "hw.gpu.memory.usage": (used := info.used),
        "hw.gpu.memory.utilization": used / info.total,
        "nvidia.gpu.memory.reserved": info.reserved,
    }


def power_peak(gpu: "Gpu") -> Values:
    """The highest 20 ms sample of the window, when 90 % of the window was seen."""
    seen, window = gpu.ring_seen, gpu.ring
    _, samples = nvml.nvmlDeviceGetSamples(gpu.handle, nvml.NVML_TOTAL_POWER_SAMPLES, seen)
    if not samples:
        return {}
    first, last = samples[0].timeStamp, samples[-1].timeStamp
    start = seen if first - seen <= CONTIGUOUS_US else first
    window.append((last, last - start, max(sample.sampleValue.uiVal for sample in samples)))
    gpu.ring_seen = last
    while window[0][0] <= last - WINDOW_US:
        window.popleft()
    if sum(covered for _, covered, _ in window) < 0.9 * WINDOW_US:
        return {}
    return {"nvidia.gpu.power.peak": max(peak for _, _, peak in window) * 1e-3}


def fabric(gpu: "Gpu") -> Values:
    """State 0 not supported, 1 not started, 2 in progress, 3 completed; the mask: hw.status."""
    info = nvml.c_nvmlGpuFabricInfo_v3_t()
    nvml.nvmlDeviceGetGpuFabricInfoV(gpu.handle, ctypes.byref(info))
    return {"nvidia.gpu.fabric.status": info.state, "nvidia.gpu.fabric.health": info.healthMask}


def sram_threshold(gpu: "Gpu") -> Values:
    status = nvml.c_nvmlEccSramErrorStatus_v1_t()
    nvml.nvmlDeviceGetSramEccErrorStatus(gpu.handle, ctypes.byref(status))
    return {"nvidia.gpu.ecc.sram.threshold_exceeded": status.bThresholdExceeded}


CLOCK, REPAIR = "nvidia.gpu.clock.frequency", "nvidia.gpu.memory.repair.pending"
# The kernel's fixed number of the host's PID namespace; in another, the lists are empty.
PIDS_SEEN = str(Path("/proc/self/ns/pid").readlink()) == "pid:[4026531836]"
NO_SPARES = "nvidia.gpu.row_remap.bank.status|none"
CALLS: dict[str, list[Call]] = {
    "fast": [
        utilization,
        memory,
        power_peak,
        number("hw.temperature|gpu", 1, nvml.nvmlDeviceGetTemperatureV, 0),
        number(f"{CLOCK}|sm", 1e6, nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM),
        number(f"{CLOCK}|memory", 1e6, nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_MEM),
    ],
    "default": [
        number("hw.energy", 1e-3, nvml.nvmlDeviceGetTotalEnergyConsumption),
        number("nvidia.gpu.temperature.margin", 1, nvml.nvmlDeviceGetMarginTemperature),
        number(f"{PCIE}.replays", 1, nvml.nvmlDeviceGetPcieReplayCounter),
        *(processes(kind) for kind in ("Compute", "Graphics", "MPSCompute") if PIDS_SEEN),
    ],
    "slow": [
        number(f"{PCIE}.link.generation", 1, nvml.nvmlDeviceGetCurrPcieLinkGeneration),
        number(f"{PCIE}.link.width", 1, nvml.nvmlDeviceGetCurrPcieLinkWidth),
        number("nvidia.gpu.persistence.enabled", 1, nvml.nvmlDeviceGetPersistenceMode),
        pair(("nvidia.gpu.ecc.enabled", "nvidia.gpu.ecc.pending"), nvml.nvmlDeviceGetEccMode),
        pair(("nvidia.gpu.mig.enabled", "nvidia.gpu.mig.pending"), nvml.nvmlDeviceGetMigMode),
        pair((f"{REPAIR}|channel", f"{REPAIR}|tpc"), nvml.nvmlDeviceGetRepairStatus),
        # Of the places of ECC errors only the SRAM (7) has no field; 1 is the lifetime count.
        number(f"{LIFETIME}|sram|corrected", 1, nvml.nvmlDeviceGetMemoryErrorCounter, 0, 1, 7),
        number(f"{LIFETIME}|sram|uncorrected", 1, nvml.nvmlDeviceGetMemoryErrorCounter, 1, 1, 7),
        number("nvidia.gpu.memory.unrepairable", 1, nvml.nvmlDeviceGetUnrepairableMemoryFlag_v1),
        # Not a standard series, but hw.status (core) depends on banks without spares.
        number(NO_SPARES, 1, lambda handle: nvml.nvmlDeviceGetRowRemapperHistogram(handle).none),
        fabric,
        sram_threshold,
    ],
}
IDENTITY = ("UUID", "MinorNumber", "Name", "Serial", "VbiosVersion", "GspFirmwareVersion")
HARDWARE = ("PciInfo", "Architecture", "CudaComputeCapability", "BoardPartNumber", "MemoryInfo")


class Gpm:
    """One sample a tick, and the metrics between it and the one before."""

    ASKED = (  # id, factor, gauge, integral
        (1, 0.01, "nvidia.gpu.engine.utilization|graphics", "nvidia.gpu.engine.time|graphics"),
        (2, 0.01, "nvidia.gpu.sm.utilization", "nvidia.gpu.engine.time|sm"),
        (3, 0.01, "nvidia.gpu.sm.occupancy", ""),
        (5, 0.01, "nvidia.gpu.pipe.utilization|tensor", "nvidia.gpu.engine.time|tensor"),
        (10, 0.01, "nvidia.gpu.dram.utilization", "nvidia.gpu.engine.time|dram"),
        (20, 1 << 20, "", "hw.gpu.io|transmit"),
        (21, 1 << 20, "", "hw.gpu.io|receive"),
    )

    def __init__(self, handle: Any) -> None:
        self.baseline, self.spare = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
        self.request = nvml.c_nvmlGpmMetricsGet_t(version=1, numMetrics=len(self.ASKED))
        self.answers = [self.request.metrics[i] for i in range(len(self.ASKED))]  # views into it
        for answer, asked in zip(self.answers, self.ASKED, strict=True):
            answer.metricId = asked[0]
        self.sums: Counter[str] = Counter()
        nvml.nvmlGpmSampleGet(handle, self.baseline)
        self.at = time.monotonic()

    def read(self, gpu: "Gpu") -> Values:
        nvml.nvmlGpmSampleGet(gpu.handle, self.spare)
        elapsed = time.monotonic() - self.at
        if elapsed < GPM_MIN_S:
            return {}
        self.at += elapsed
        self.request.sample1, self.request.sample2 = self.baseline, self.spare
        self.baseline, self.spare = self.spare, self.baseline
        nvml.nvmlGpmMetricsGet(self.request)
        values: Values = {}
        for (_, factor, gauge, total), answer in zip(self.ASKED, self.answers, strict=True):
            value = answer.value * factor
            if answer.nvmlReturn or not math.isfinite(value):
                continue
            if gauge:
                values[gauge] = value
            if total:
                values[total] = self.sums[total] = self.sums[total] + value * elapsed
        return values


class Gpu:
    """One GPU: what it answers, found at the start, and what goes from tick to tick."""

    def __init__(self, index: int) -> None:
        self.handle = nvml.nvmlDeviceGetHandleByIndex(index)
        self.ring: deque[tuple[int, int, int]] = deque()
        self.ring_seen = 0
        self.xids: Counter[int] = Counter()
        self.info: dict[str, Any] = {}
        for what in IDENTITY + HARDWARE:
            with contextlib.suppress(nvml.NVMLError):
                self.info[what] = getattr(nvml, f"nvmlDeviceGet{what}")(self.handle)
        support = nvml.nvmlGpmQueryDeviceSupport(self.handle)
        self.gpm = Gpm(self.handle) if support.isSupportedDevice else None
        asked = FIELDS | {"slow": FIELDS["slow"] + link_fields(self.handle)}
        self.fields = {tier: offered(self.handle, fields) for tier, fields in asked.items()}
        self.calls = {tier: list(filter(self.answers, calls)) for tier, calls in CALLS.items()}
        self.calls["fast"] += [self.gpm.read] if self.gpm else []
        self.plans: dict[Sequence[str], list[Call]] = {tiers: self.plan(tiers) for tiers in DUE}

    def answers(self, call: Call) -> bool:
        try:
            call(self)
        except nvml.NVMLError as error:
            return error.value not in UNSUPPORTED
        return True

    def plan(self, tiers: Sequence[str]) -> list[Call]:
        fields = [field for tier in tiers for field in self.fields[tier]]
        return [batch(fields), *(call for tier in tiers for call in self.calls[tier])]

    def tick(self, tiers: Sequence[str]) -> Values:
        """What is due; a reading that fails is absent this time."""
        values: Values = {f"nvidia.gpu.xid.code.errors|{xid}": n for xid, n in self.xids.items()}
        for call in self.plans[tiers]:
            try:
                values |= call(self)
            except nvml.NVMLError:
                continue
        return values


class BareLoop:
    """Reads these GPUs, or all. Call `tick` once a second with a monotonic clock's seconds."""

    def __init__(self, indices: Sequence[int] = ()) -> None:
        self.indices = indices
        self.gpus: dict[int | None, Gpu] = {}  # by handle, as events name them
        self.due_s = dict.fromkeys(PERIOD_S, -math.inf)
        self.ticks: Counter[str] = Counter()

    def open(self) -> None:
        """Start NVML, find what each GPU offers, subscribe to its Xids."""
        nvml.nvmlInit()
        self.driver = nvml.nvmlSystemGetDriverVersion()
        self.events = nvml.nvmlEventSetCreate()
        for index in self.indices or range(nvml.nvmlDeviceGetCount()):
            gpu = Gpu(index)
            self.gpus[ctypes.cast(gpu.handle, ctypes.c_void_p).value] = gpu
            with contextlib.suppress(nvml.NVMLError):
                xid = nvml.nvmlEventTypeXidCriticalError
                nvml.nvmlDeviceRegisterEvents(gpu.handle, xid, self.events)
        time.sleep(GPM_MIN_S)  # so that the first tick has a pair

    def tick(self, now_s: float) -> list[Values]:
        """One sweep: the readings that are due, in base units, for each GPU."""
        tiers = ("fast", *(t for t, due_s in self.due_s.items() if now_s >= due_s - SLACK_S))
        self.due_s |= {tier: now_s + PERIOD_S[tier] for tier in tiers[1:]}
        self.ticks.update(tiers)
        with contextlib.suppress(nvml.NVMLError, KeyError):  # a time-out: there was none
            event = nvml.nvmlEventSetWait(self.events, 0)
            handle = ctypes.cast(event.device, ctypes.c_void_p).value
            self.gpus[handle].xids[event.eventData] += 1
        return [gpu.tick(tiers) for gpu in self.gpus.values()]

    def calls(self) -> dict[str, int]:
        """NVML calls so far, by tier; the event wait, field batch and GPM's second are fast."""
        gpus = self.gpus.values()
        made = {t: n * sum(len(gpu.calls[t]) for gpu in gpus) for t, n in self.ticks.items()}
        made["fast"] += self.ticks["fast"] * (1 + sum(2 if gpu.gpm else 1 for gpu in gpus))
        return made

    def close(self) -> None:
        for gpu in self.gpus.values():
            for sample in (gpu.gpm.baseline, gpu.gpm.spare) if gpu.gpm else ():
                nvml.nvmlGpmSampleFree(sample)
        nvml.nvmlEventSetFree(self.events)
        nvml.nvmlShutdown()


def measure(loop: BareLoop, seconds: int) -> dict[str, Any]:
    walls, cpus, start = [], [], time.monotonic()
    for second in range(seconds):
        time.sleep(max(0.0, start + second - time.monotonic()))
        cpu, wall = time.process_time(), time.perf_counter()
        loop.tick(time.monotonic())
        cpus.append(time.process_time() - cpu)
        walls.append(time.perf_counter() - wall)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return {
        "gpus": len(loop.gpus),
        "sweeps": seconds,
        "calls": loop.calls(),
        "cpu_s": sum(cpus),
        "cpu_s_per_sweep": sum(cpus) / seconds,
        "wall_s_median": statistics.median(walls),
        "wall_s_p99": sorted(walls)[math.ceil(0.99 * seconds) - 1],
        "rss_bytes": pages * os.sysconf("SC_PAGE_SIZE"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="What the agent's readings cost in plain pynvml.")
    parser.add_argument("--seconds", type=int, default=60, help="one sweep a second (60)")
    parser.add_argument("--gpus", default="", help="indices, as in 0,1 (all)")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    args = parser.parse_args()
    try:
        loop = BareLoop([int(index) for index in args.gpus.split(",") if index])
        loop.open()
    except (ValueError, nvml.NVMLError) as error:
        parser.exit(1, f"bare_loop: {error}\n")
    found = measure(loop, args.seconds)
    loop.close()
    print(json.dumps(found) if args.json else "\n".join(f"{k}: {v}" for k, v in found.items()))


if __name__ == "__main__":
    main()
