"""What nvidia-smi says, in our names and base units, with the step in which it says it."""

from __future__ import annotations

import re
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from otel_gpu.model import Attributes

MIB = 2**20
MICRO = 1e-6
PERCENT = 1e-2
MEGA = 1e6

NUMBER = re.compile(r"-?\d+(\.\d+)?")


class Place(NamedTuple):
    """Where nvidia-smi's XML has a value, what makes it base units, and its last digit."""

    path: str
    scale: float
    step: float  # of the text, in its own unit


class Value(NamedTuple):
    """A value in base units, and the step of its last digit."""

    value: float
    step: float


Key = tuple[str, str, Attributes]  # GPU, metric, attributes


def sensor(where: str) -> Attributes:
    return (("hw.sensor_location", where),)


def limit(kind: str) -> Attributes:
    return (("hw.limit_type", kind),)


def margin(where: str, kind: str) -> Attributes:
    return sensor(where) + limit(kind)


def task(name: str) -> Attributes:
    return (("hw.gpu.task", name),)


def domain(name: str) -> Attributes:
    return (("nvidia.gpu.clock.domain", name),)


def reason(name: str) -> Attributes:
    return (("nvidia.gpu.clock.reason", name),)


def error(kind: str) -> Attributes:
    return (("error.type", kind),)


def memory_error(kind: str, where: str) -> Attributes:
    return (*error(kind), ("nvidia.gpu.memory.location", where))


LINK = "pci/pci_gpu_link_info"
ECC = (
    ("corrected", "dram", "correctable"),
    ("uncorrected", "dram", "uncorrectable"),
    ("corrected", "sram", "correctable"),
)
POWER = "gpu_power_readings"
COUNTERS = "clocks_event_reasons_counters/clocks_event_reasons_counters"
REASON = "clocks_event_reasons/clocks_event_reason"

PLACES: Mapping[tuple[str, Attributes], Place] = {
    ("hw.gpu.utilization", task("general")): Place("utilization/gpu_util", PERCENT, 1),
    ("hw.gpu.utilization", task("encoder")): Place("utilization/encoder_util", PERCENT, 1),
    ("hw.gpu.utilization", task("decoder")): Place("utilization/decoder_util", PERCENT, 1),
    ("hw.gpu.utilization", task("jpeg")): Place("utilization/jpeg_util", PERCENT, 1),
    ("hw.gpu.utilization", task("ofa")): Place("utilization/ofa_util", PERCENT, 1),
    ("nvidia.gpu.memory_controller.utilization", ()): Place("utilization/memory_util", PERCENT, 1),
    ("hw.gpu.memory.usage", ()): Place("fb_memory_usage/used", MIB, 1),
    ("hw.gpu.memory.limit", ()): Place("fb_memory_usage/total", MIB, 1),
    ("nvidia.gpu.memory.free", ()): Place("fb_memory_usage/free", MIB, 1),
    ("nvidia.gpu.memory.reserved", ()): Place("fb_memory_usage/reserved", MIB, 1),
    ("nvidia.gpu.bar1.usage", ()): Place("bar1_memory_usage/used", MIB, 1),
    ("nvidia.gpu.bar1.limit", ()): Place("bar1_memory_usage/total", MIB, 1),
    ("hw.power", ()): Place(f"{POWER}/instant_power_draw", 1, 0.01),
    ("nvidia.gpu.power.average", ()): Place(f"{POWER}/average_power_draw", 1, 0.01),
    ("nvidia.gpu.memory.power", ()): Place("gpu_memory_power_readings/average_power_draw", 1, 0.01),
    ("nvidia.gpu.power.limit", limit("enforced")): Place(f"{POWER}/current_power_limit", 1, 0.01),
    ("nvidia.gpu.power.limit", limit("requested")): Place(
        f"{POWER}/requested_power_limit", 1, 0.01
    ),
    ("nvidia.gpu.power.limit", limit("default")): Place(f"{POWER}/default_power_limit", 1, 0.01),
    ("nvidia.gpu.power.limit", limit("min")): Place(f"{POWER}/min_power_limit", 1, 0.01),
    ("nvidia.gpu.power.limit", limit("max")): Place(f"{POWER}/max_power_limit", 1, 0.01),
    ("hw.temperature", sensor("gpu")): Place("temperature/gpu_temp", 1, 1),
    ("hw.temperature", sensor("memory")): Place("temperature/memory_temp", 1, 1),
    ("nvidia.gpu.temperature.margin", ()): Place("temperature/gpu_temp_tlimit", 1, 1),
    ("nvidia.gpu.temperature.margin.limit", margin("gpu", "high.critical")): Place(
        "temperature/gpu_temp_max_tlimit_threshold", 1, 1
    ),
    ("nvidia.gpu.temperature.margin.limit", margin("gpu", "throttled")): Place(
        "temperature/gpu_temp_slow_tlimit_threshold", 1, 1
    ),
    ("nvidia.gpu.temperature.margin.limit", margin("gpu", "max")): Place(
        "temperature/gpu_temp_max_gpu_tlimit_threshold", 1, 1
    ),
    ("nvidia.gpu.temperature.margin.limit", margin("memory", "max")): Place(
        "temperature/gpu_temp_max_mem_tlimit_threshold", 1, 1
    ),
    ("hw.fan.speed_ratio", sensor("fan0")): Place("fan_speed", PERCENT, 1),
    ("nvidia.gpu.performance_state", ()): Place("performance_state", 1, 1),
    **{
        ("nvidia.gpu.clock.frequency", domain(name)): Place(f"clocks/{tag}", MEGA, 1)
        for name, tag in {
            "sm": "sm_clock",
            "memory": "mem_clock",
            "graphics": "graphics_clock",
            "video": "video_clock",
        }.items()
    },
    **{
        ("nvidia.gpu.clock.limit", domain(name)): Place(f"max_clocks/{tag}", MEGA, 1)
        for name, tag in {
            "sm": "sm_clock",
            "memory": "mem_clock",
            "graphics": "graphics_clock",
            "video": "video_clock",
        }.items()
    },
    **{
        ("nvidia.gpu.clock.reason.time", reason(name)): Place(f"{COUNTERS}_{tag}", MICRO, 1)
        for name, tag in {
            "sw_power_cap": "sw_power_cap",
            "sync_boost": "sync_boost",
            "sw_thermal": "sw_therm_slowdown",
            "hw_thermal": "hw_therm_slowdown",
            "hw_power_brake": "hw_power_brake",
        }.items()
    },
    **{
        ("nvidia.gpu.clock.reason.status", reason(name)): Place(f"{REASON}_{tag}", 1, 0)
        for name, tag in {
            "idle": "gpu_idle",
            "app_clocks": "applications_clocks_setting",
            "sw_power_cap": "sw_power_cap",
            "hw_slowdown": "hw_slowdown",
            "sync_boost": "sync_boost",
            "sw_thermal": "sw_thermal_slowdown",
            "hw_thermal": "hw_thermal_slowdown",
            "hw_power_brake": "hw_power_brake_slowdown",
            "display": "display_clocks_setting",
        }.items()
    },
    ("nvidia.gpu.pcie.link.generation", ()): Place(f"{LINK}/pcie_gen/current_link_gen", 1, 0),
    ("nvidia.gpu.pcie.link.max_generation", ()): Place(f"{LINK}/pcie_gen/max_link_gen", 1, 0),
    ("nvidia.gpu.pcie.link.width", ()): Place(f"{LINK}/link_widths/current_link_width", 1, 0),
    ("nvidia.gpu.pcie.link.max_width", ()): Place(f"{LINK}/link_widths/max_link_width", 1, 0),
    ("nvidia.gpu.pcie.replays", ()): Place("pci/replay_counter", 1, 0),
    ("nvidia.gpu.pcie.errors", error("replay_rollover")): Place(
        "pci/replay_rollover_counter", 1, 0
    ),
    ("nvidia.gpu.persistence.enabled", ()): Place("persistence_mode", 1, 0),
    ("nvidia.gpu.ecc.enabled", ()): Place("ecc_mode/current_ecc", 1, 0),
    ("nvidia.gpu.mig.enabled", ()): Place("mig_mode/current_mig", 1, 0),
    ("nvidia.gpu.encoder.session.active", ()): Place("encoder_stats/session_count", 1, 0),
    ("nvidia.gpu.encoder.frames", ()): Place("encoder_stats/average_fps", 1, 1),
    ("nvidia.gpu.encoder.latency", ()): Place("encoder_stats/average_latency", MICRO, 1),
    ("nvidia.gpu.capture.session.active", ()): Place("fbc_stats/session_count", 1, 0),
    ("nvidia.gpu.row_remap.rows", error("corrected")): Place(
        "remapped_rows/remapped_row_corr", 1, 0
    ),
    ("nvidia.gpu.row_remap.rows", error("uncorrected")): Place(
        "remapped_rows/remapped_row_unc", 1, 0
    ),
    ("nvidia.gpu.row_remap.pending", ()): Place("remapped_rows/remapped_row_pending", 1, 0),
    ("nvidia.gpu.row_remap.failed", ()): Place("remapped_rows/remapped_row_failure", 1, 0),
    **{
        ("nvidia.gpu.row_remap.bank.status", (("nvidia.gpu.row_remap.bank.state", name),)): Place(
            f"remapped_rows/row_remapper_histogram/row_remapper_histogram_{name}", 1, 0
        )
        for name in ("max", "high", "partial", "low", "none")
    },
    **{
        ("nvidia.gpu.ecc.errors", memory_error(kind, where)): Place(
            f"ecc_errors/volatile/{where}_{tag}", 1, 0
        )
        for kind, where, tag in ECC
    },
    **{
        ("nvidia.gpu.ecc.lifetime_errors", memory_error(kind, where)): Place(
            f"ecc_errors/aggregate/{where}_{tag}", 1, 0
        )
        for kind, where, tag in ECC
    },
    ("nvidia.gpu.ecc.sram.threshold_exceeded", ()): Place(
        "ecc_errors/aggregate/sram_threshold_exceeded", 1, 0
    ),
}
"""Everything of the catalog that `nvidia-smi -q -x` reports as a number as well."""


def ask() -> ET.Element:
    """Run nvidia-smi once."""
    done = subprocess.run(["nvidia-smi", "-q", "-x"], capture_output=True, check=True)
    return ET.fromstring(done.stdout)


def values(log: ET.Element) -> dict[Key, Value]:
    """Give every value that it has a number for, by GPU, metric and attributes."""
    return {
        (gpu.findtext("uuid", ""), metric, attributes): Value(number * place.scale, step)
        for gpu in log.iter("gpu")
        for (metric, attributes), place in PLACES.items()
        if (number := parsed(gpu.findtext(place.path, "N/A"))) is not None
        for step in (place.step * place.scale,)
    }


def parsed(text: str) -> float | None:
    """Read `700.00 W`, `P0`, `Active`; None for `N/A` and other words."""
    words = {"Active": 1, "Not Active": 0, "Enabled": 1, "Disabled": 0, "Yes": 1, "No": 0}
    if text in words:
        return words[text]
    found = NUMBER.search(text)
    return float(found.group()) if found else None


def lacking(log: ET.Element) -> Iterator[Key]:
    """Give what nvidia-smi itself calls not available: there the agent must show nothing either."""
    for gpu in log.iter("gpu"):
        for (metric, attributes), place in PLACES.items():
            if gpu.findtext(place.path, "N/A").strip() == "N/A":
                yield gpu.findtext("uuid", ""), metric, attributes
