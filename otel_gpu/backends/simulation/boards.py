"""The models of GPU that can be simulated, as data: their figures, and what they do not offer.

The H200 is one that was recorded, idle and busy, on driver 580.159.04. The others follow NVIDIA's
published figures and what nvml.h says of their generation. Where that is silent, a board is given
the refusal that a reader of it must be able to live with; no such board was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from otel_gpu.catalog.reading import FIELD
from otel_gpu.model import Code, Query

MIB = 1 << 20
PAGE = 1 << 16
GRAPHICS, SM, MEMORY, VIDEO = range(4)  # nvml.h, nvmlClockType_t
MEMORY_SCOPE = 2

Refusals = Mapping[str | Query, int]


@dataclass(frozen=True, slots=True)
class Clock:
    """The clocks of one domain, MHz: when idle, when busy, and the highest that is possible."""

    idle: int
    busy: int
    most: int


@dataclass(frozen=True, slots=True)
class Heat:
    """How a sensor follows power: where it stands at 0 W, Cel per W, and its time constant."""

    ambient: float
    per_watt: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Link:
    """The PCIe link: its generation, that which it falls to when idle, and its lanes."""

    generation: int
    idle_generation: int
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A model of GPU: figures in W, Cel, MHz and bytes, and what it refuses, with which code.

    `thresholds` and `margins` are by their place in `nvmlTemperatureThresholds_t`: shutdown,
    slowdown, memory, GPU. `media` is how busy encoder, decoder, JPEG and OFA are at full load.
    """

    model: str
    architecture: str
    compute_capability: str
    bios_version: str
    idle_w: float
    cap_w: float
    least_w: float
    most_w: float
    heat: Heat
    clocks: Mapping[int, Clock]
    part_number: str = ""
    serial: bool = True
    firmware: bool = True
    averages: bool = True  # GetPowerUsage is a 1 s average (nvml.h: Ampere but GA100, and newer)
    memory_total: int = 0
    memory_reserved: int = 0
    memory_heat: Heat | None = None
    memory_w: tuple[float, float] = (0.0, 0.0)
    bar1_total: int = 0
    thresholds: tuple[int, ...] = ()
    margins: tuple[int, ...] = ()
    hottest: int = 85  # where the margin is used up
    idle_state: int = 0
    fans: int = 0
    fan_rpm: int = 0
    link: Link = Link(5, 5, 16)
    media: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    refuses: Refusals = field(default_factory=dict)


def fields(*numbers: int, scope: int = 0, code: int = Code.NOT_SUPPORTED) -> Refusals:
    """Refuse fields with one code."""
    return {Query(FIELD, (number, scope)): code for number in numbers}


def calls(*names: str, code: int = Code.NOT_SUPPORTED) -> Refusals:
    """Refuse functions, whatever their arguments."""
    return dict.fromkeys((f"nvmlDeviceGet{name}" for name in names), code)


def asked(name: str, *arguments: int) -> Query:
    """Name one question."""
    return Query(f"nvmlDeviceGet{name}", arguments)


NO_FANS = calls("FanSpeed_v2", "FanSpeedRPM", code=Code.INVALID_ARGUMENT)
NO_MEMORY_POWER = fields(185, scope=MEMORY_SCOPE)
NO_THRESHOLDS = calls("TemperatureThreshold")
NO_MARGINS = {**calls("MarginTemperature"), **fields(193, 194, 195, 196)}
NO_PCIE = {
    **calls("PcieThroughput", "PcieReplayCounter"),
    **calls("CurrPcieLinkGeneration", "CurrPcieLinkWidth"),
    **calls("MaxPcieLinkGeneration", "MaxPcieLinkWidth"),
    **fields(95, 169, *range(173, 184)),
}
MIG_ON = calls(
    "UtilizationRates",
    "EncoderUtilization",
    "DecoderUtilization",
    "JpgUtilization",
    "OfaUtilization",
)

H200 = Board(
    model="NVIDIA H200",
    architecture="Hopper",
    compute_capability="9.0",
    bios_version="96.00.A5.00.1A",
    part_number="692-2G520-0282-001",
    idle_w=82,
    cap_w=700,
    least_w=200,
    most_w=700,
    heat=Heat(32.6, 0.0515, 25),
    memory_heat=Heat(36.5, 0.031, 60),
    memory_w=(34, 180),
    memory_total=143_771 * MIB,
    memory_reserved=644_939_776,
    bar1_total=262_144 * MIB,
    clocks={
        GRAPHICS: Clock(345, 1980, 1980),
        SM: Clock(345, 1980, 1980),
        MEMORY: Clock(3201, 3201, 3201),
        VIDEO: Clock(765, 1545, 1545),
    },
    thresholds=(95, 89, 95, 87),
    margins=(-8, -2, 0, 0),
    hottest=87,
    refuses=NO_FANS,
)

A100 = Board(
    model="NVIDIA A100-SXM4-80GB",
    architecture="Ampere",
    compute_capability="8.0",
    bios_version="92.00.45.00.05",
    part_number="692-2G506-0212-002",
    link=Link(4, 4, 16),
    idle_w=58,
    cap_w=400,
    least_w=100,
    most_w=400,
    averages=False,
    heat=Heat(29.5, 0.085, 22),
    memory_heat=Heat(33, 0.1, 55),
    memory_total=81_920 * MIB,
    memory_reserved=624 * MIB,
    bar1_total=131_072 * MIB,
    clocks={
        GRAPHICS: Clock(210, 1410, 1410),
        SM: Clock(210, 1410, 1410),
        MEMORY: Clock(1593, 1593, 1593),
        VIDEO: Clock(585, 1275, 1290),
    },
    thresholds=(92, 89, 95, 85),
    refuses={**NO_FANS, **NO_MARGINS, **NO_MEMORY_POWER, **fields(185, 186), **MIG_ON},
)

RTX4090 = Board(
    model="NVIDIA GeForce RTX 4090",
    architecture="Ada",
    compute_capability="8.9",
    bios_version="95.02.3C.00.8C",
    serial=False,
    firmware=False,
    link=Link(4, 1, 16),
    idle_w=21,
    cap_w=450,
    least_w=150,
    most_w=600,
    heat=Heat(31, 0.088, 18),
    memory_total=24_564 * MIB,
    memory_reserved=400 * MIB,
    bar1_total=32_768 * MIB,
    clocks={
        GRAPHICS: Clock(210, 2745, 3105),
        SM: Clock(210, 2745, 3105),
        MEMORY: Clock(405, 10251, 10501),
        VIDEO: Clock(1185, 2145, 2415),
    },
    margins=(-7, -2, 0, 0),
    hottest=84,
    idle_state=8,
    fans=3,
    fan_rpm=3000,
    media=(0.12, 0.2, 0.0, 0.0),
    refuses={**NO_THRESHOLDS, **NO_MEMORY_POWER, **fields(82, 195)},
)

R525 = {
    **calls(
        "TemperatureV",
        "MarginTemperature",
        "FanSpeedRPM",
        "CurrentClocksEventReasons",
        "SupportedClocksEventReasons",
        "JpgUtilization",
        "OfaUtilization",
        code=Code.FUNCTION_NOT_FOUND,
    ),
    **fields(*range(173, 184), code=Code.INVALID_ARGUMENT),
    **fields(*range(185, 191), *range(192, 197), 269, 270, 271, code=Code.INVALID_ARGUMENT),
    **fields(185, scope=MEMORY_SCOPE, code=Code.INVALID_ARGUMENT),
}
"""What the library of the R525 branch has not yet: functions and fields of R535 and later."""

T4 = Board(
    model="Tesla T4",
    architecture="Turing",
    compute_capability="7.5",
    bios_version="90.04.96.00.9F",
    part_number="900-2G183-0000-001",
    firmware=False,
    link=Link(3, 1, 16),
    idle_w=9.6,
    cap_w=70,
    least_w=60,
    most_w=70,
    averages=False,
    heat=Heat(30, 0.52, 30),
    memory_total=15_360 * MIB,
    memory_reserved=447 * MIB,
    bar1_total=256 * MIB,
    clocks={
        GRAPHICS: Clock(300, 1590, 1590),
        SM: Clock(300, 1590, 1590),
        MEMORY: Clock(405, 5000, 5001),
        VIDEO: Clock(540, 1470, 1470),
    },
    thresholds=(96, 93, 0, 85),
    idle_state=8,
    media=(0.1, 0.45, 0.0, 0.0),
    refuses={
        **calls("FanSpeed_v2"),
        **fields(82),
        **R525,
        asked("TemperatureThreshold", 2): Code.NOT_SUPPORTED,
    },
)

GB10 = Board(
    model="NVIDIA GB10",
    architecture="Blackwell",
    compute_capability="12.1",
    bios_version="9A.0B.17.00.00",
    serial=False,
    idle_w=4.2,
    cap_w=90,
    least_w=0,
    most_w=0,
    heat=Heat(35, 0.42, 30),
    clocks={
        GRAPHICS: Clock(208, 2418, 3003),
        SM: Clock(208, 2418, 3003),
        VIDEO: Clock(600, 2000, 2600),
    },
    margins=(-5, -2, 0, 0),
    hottest=90,
    idle_state=8,
    media=(0.05, 0.1, 0.0, 0.0),
    refuses={
        **NO_THRESHOLDS,
        **NO_MEMORY_POWER,
        **calls("FanSpeed_v2", "FanSpeedRPM", "MemoryInfo_v2", "BAR1MemoryInfo"),
        **calls("TotalEnergyConsumption", "Samples", "EnforcedPowerLimit"),
        **calls("PowerManagementLimit", "PowerManagementDefaultLimit"),
        **NO_PCIE,
        **fields(82, 187, 188, 189, 190, 192, 195),
        asked("ClockInfo", MEMORY): Code.NOT_SUPPORTED,
        asked("MaxClockInfo", MEMORY): Code.NOT_SUPPORTED,
    },
)
