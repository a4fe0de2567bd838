"""What a simulated GPU replies to each NVML call: its state in NVML's own shapes and units.

A call that stands neither here nor in the catalog is one that nobody modelled: not supported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from otel_gpu.backends.simulation import errors, links, modes, processes
from otel_gpu.backends.simulation.meter import TICK_S
from otel_gpu.backends.simulation.physics import Gpu, Instance
from otel_gpu.backends.simulation.refusals import MEMORY_SCOPE
from otel_gpu.backends.simulation.shapes import Moment, Reply, chosen, milli, nothing, state
from otel_gpu.catalog.processes import LISTS
from otel_gpu.catalog.reading import FIELD
from otel_gpu.model import Answer, Code, Query

RING = 119  # samples: an H200's ring spans 2.36 s
TICK_US = round(TICK_S * 1e6)
PERIOD_US = 100_000  # of the media engines' utilization, as an H200 says
REASONS = 0x1FF  # that can be reported; an H200's
NANO = 1_000_000_000


def reply(part: Gpu | Instance, query: Query, moment: Moment) -> Answer | None:
    """Answer for a GPU or an instance; None where its state does not say."""
    if isinstance(part, Instance):
        known = OF_INSTANCES.get(query.call)
        return known and Answer(0, known(part, moment.tick))
    refused = part.board.refuses.get(query) or part.board.refuses.get(query.call)
    if refused:
        return Answer(refused)
    found = field(query.args) if query.call == FIELD else CALLS.get(query.call)
    if found is None:
        return None
    value = found(part, moment, query.args)
    return value if isinstance(value, Answer) else Answer(0, value)


def field(args: tuple[int, ...]) -> Reply | None:
    """Find the reply to a field: by id and scope, or by the id alone where each link has it."""
    return FIELDS.get(args) or (links.FIELDS.get(args[0]) if len(args) == 2 else None)


def instance_memory(instance: Instance, tick: int) -> dict[str, int]:
    """Give the memory of a MIG instance."""
    return memory(instance.total, instance.reserved, instance.memory(tick))


def memory(total: int, reserved: int, used: int) -> dict[str, int]:
    """Give an `nvmlMemory_v2_t`."""
    return {"total": total, "reserved": reserved, "free": total - reserved - used, "used": used}


def gpu_memory(gpu: Gpu, moment: Moment, _: tuple[int, ...]) -> dict[str, int]:
    """Give the memory of a whole GPU."""
    return memory(gpu.board.memory_total, gpu.board.memory_reserved, gpu.memory(moment.tick))


def bar1(gpu: Gpu, moment: Moment, _: tuple[int, ...]) -> dict[str, int]:
    """Give an `nvmlBAR1Memory_t`: 26 pages when idle, and a part of what a job maps."""
    used = 26 * 65_536 + gpu.memory(moment.tick) // 4096 // 65_536 * 65_536
    total = gpu.board.bar1_total
    return {"bar1Total": total, "bar1Free": total - used, "bar1Used": used}


def utilization(gpu: Gpu, moment: Moment, _: tuple[int, ...]) -> dict[str, int]:
    """Give an `nvmlUtilization_t`, in percent."""
    return {
        "gpu": round(100 * gpu.utilization(moment.tick)),
        "memory": round(100 * gpu.bandwidth(moment.tick)),
    }


def engine(place: int) -> Reply:
    """Give the utilization of a media engine and its sampling period."""

    def percent(gpu: Gpu, moment: Moment, _: tuple[int, ...]) -> list[int]:
        return [round(100 * gpu.media(moment.tick)[place]), PERIOD_US]

    return percent


def power_usage(gpu: Gpu, moment: Moment, _: tuple[int, ...]) -> int:
    """Give mW: the mean of the last second or, before that was introduced, of this moment."""
    watts = gpu.average_watts if gpu.board.averages else gpu.watts
    return milli(watts(moment.tick))


def samples(gpu: Gpu, moment: Moment, args: tuple[int, ...]) -> Any:
    """Give the power ring, oldest first: [Unix microseconds, mW], newer than the last argument."""
    kind, since = (*args, 0)[:2] if args else (None, 0)
    if kind != 0:  # nvml.h, NVML_TOTAL_POWER_SAMPLES
        return Answer(Code.NOT_FOUND)
    newer = (moment.unix_us - since - 1) // TICK_US + 1
    count = max(0, min(RING, newer))
    ring = [
        [moment.unix_us - back * TICK_US, milli(gpu.watts(moment.tick - back))]
        for back in reversed(range(count))
    ]
    return ring or Answer(Code.NOT_FOUND)


def limit(gpu: Gpu, _: Moment, __: tuple[int, ...]) -> int:
    """Give the power cap in mW: enforced, requested and default are the same."""
    return milli(gpu.board.cap_w)


def threshold(gpu: Gpu, _: Moment, args: tuple[int, ...]) -> int | Answer:
    """Give one of the absolute thresholds."""
    return chosen(gpu.board.thresholds, args)


def celsius(gpu: Gpu, moment: Moment, args: tuple[int, ...]) -> int | Answer:
    """Give the GPU's temperature; it has one sensor."""
    return chosen((gpu.celsius(moment.tick),), args)


def fan(gpu: Gpu, moment: Moment, args: tuple[int, ...]) -> int | Answer:
    """Give the percentage that a fan is driven at."""
    tick = moment.tick
    return chosen(tuple(round(100 * gpu.fan(n, tick)) for n in range(gpu.board.fans)), args)


def fan_rpm(gpu: Gpu, moment: Moment, _: tuple[int, ...]) -> int:
    """Give the speed that the first fan is driven at."""
    return round(gpu.board.fan_rpm * gpu.fan(0, moment.tick))


def clock(gpu: Gpu, moment: Moment, args: tuple[int, ...]) -> int | Answer:
    """Give the clock of a domain in MHz."""
    if len(args) != 1 or args[0] not in gpu.board.clocks:
        return Answer(Code.INVALID_ARGUMENT)
    return gpu.megahertz(args[0], moment.tick)


def highest_clock(gpu: Gpu, _: Moment, args: tuple[int, ...]) -> int | Answer:
    """Give the highest clock of a domain in MHz."""
    if len(args) != 1 or args[0] not in gpu.board.clocks:
        return Answer(Code.INVALID_ARGUMENT)
    return gpu.board.clocks[args[0]].most


def pcie(gpu: Gpu, moment: Moment, args: tuple[int, ...]) -> int | Answer:
    """Give kB/s over PCIe in one direction: transmitted or received."""
    return chosen(tuple(int(rate / 1000) for rate in gpu.pcie(moment.tick)), args)


def generation(gpu: Gpu, moment: Moment, _: tuple[int, ...]) -> int:
    """Give the PCIe generation at which the link runs now."""
    link = gpu.board.link
    return link.generation if gpu.busy(moment.tick) else link.idle_generation


def margin_limit(which: int) -> Reply:
    """Give one of the signed T.Limit fields."""
    return lambda gpu, _, __: chosen(gpu.board.margins, (which,))


MEMORY_INFO = "nvmlDeviceGetMemoryInfo_v2"

CALLS: Mapping[str, Reply] = {
    MEMORY_INFO: gpu_memory,
    "nvmlDeviceGetBAR1MemoryInfo": bar1,
    "nvmlDeviceGetUtilizationRates": utilization,
    "nvmlDeviceGetEncoderUtilization": engine(0),
    "nvmlDeviceGetDecoderUtilization": engine(1),
    "nvmlDeviceGetJpgUtilization": engine(2),
    "nvmlDeviceGetOfaUtilization": engine(3),
    "nvmlDeviceGetPowerUsage": power_usage,
    "nvmlDeviceGetTotalEnergyConsumption": state(lambda gpu, tick: int(1000 * gpu.joules(tick))),
    "nvmlDeviceGetSamples": samples,
    "nvmlDeviceGetEnforcedPowerLimit": limit,
    "nvmlDeviceGetPowerManagementLimit": limit,
    "nvmlDeviceGetPowerManagementDefaultLimit": limit,
    "nvmlDeviceGetTemperatureV": celsius,
    "nvmlDeviceGetTemperature": celsius,
    "nvmlDeviceGetTemperatureThreshold": threshold,
    "nvmlDeviceGetMarginTemperature": state(Gpu.margin),
    "nvmlDeviceGetFanSpeed_v2": fan,
    "nvmlDeviceGetFanSpeedRPM": fan_rpm,
    "nvmlDeviceGetClockInfo": clock,
    "nvmlDeviceGetMaxClockInfo": highest_clock,
    "nvmlDeviceGetPcieThroughput": pcie,
    "nvmlDeviceGetCurrPcieLinkGeneration": generation,
    "nvmlDeviceGetCurrPcieLinkWidth": state(lambda gpu, _: gpu.board.link.width),
    "nvmlDeviceGetMaxPcieLinkGeneration": state(lambda gpu, _: gpu.board.link.generation),
    "nvmlDeviceGetMaxPcieLinkWidth": state(lambda gpu, _: gpu.board.link.width),
    "nvmlDeviceGetPerformanceState": state(Gpu.performance_state),
    "nvmlDeviceGetCurrentClocksEventReasons": state(Gpu.reasons),
    "nvmlDeviceGetCurrentClocksThrottleReasons": state(Gpu.reasons),
    "nvmlDeviceGetSupportedClocksEventReasons": lambda *_: REASONS,
    "nvmlDeviceGetSupportedClocksThrottleReasons": lambda *_: REASONS,
    **links.CALLS,
    **errors.CALLS,
    **modes.CALLS,
    **processes.CALLS,
}
"""By function."""

FIELDS: Mapping[tuple[int, ...], Reply] = {
    (74, 0): state(lambda gpu, tick: int(NANO * gpu.capped_seconds(tick))),
    **{(number, 0): nothing for number in (76, 77, 269, 270, 271)},
    (82, 0): state(Gpu.memory_celsius),
    (185, 0): state(lambda gpu, tick: milli(gpu.average_watts(tick))),
    (185, MEMORY_SCOPE): state(lambda gpu, tick: milli(gpu.memory_watts(tick))),
    (186, 0): state(lambda gpu, tick: milli(gpu.watts(tick))),
    (187, 0): state(lambda gpu, _: milli(gpu.board.least_w)),
    (188, 0): state(lambda gpu, _: milli(gpu.board.most_w)),
    **{(number, 0): limit for number in (189, 190, 192)},
    **{(193 + which, 0): margin_limit(which) for which in range(4)},
    **errors.FIELDS,
    **modes.FIELDS,
}
"""By field id and scope."""

OF_INSTANCES: Mapping[str, Callable[[Instance, int], Any]] = {
    MEMORY_INFO: instance_memory,
    LISTS["compute"].call: processes.on_instance,
    LISTS["graphics"].call: lambda *_: [],
    LISTS["mps"].call: lambda *_: [],
}
"""All that a MIG instance answers, by function."""
