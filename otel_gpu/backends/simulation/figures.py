"""What is known of a model of GPU: the figures from which one is simulated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from otel_gpu.backends.simulation.refusals import Refusals

MIB = 1 << 20
PAGE = 1 << 16
GRAPHICS, SM, MEMORY, VIDEO = range(4)  # nvml.h, nvmlClockType_t
OK, NOT_SUPPORTED = 0, 5  # nvml.h, nvmlGpuP2PStatus_t


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


@dataclass(frozen=True, slots=True)
class NvLink:
    """The NVLinks of a GPU: how many, their version (nvml.h, nvmlNvlinkVersion_t), MB/s of one."""

    links: int = 0
    version: int = 0
    speed: int = 0


@dataclass(frozen=True, slots=True)
class Engines:
    """The media engines that the driver counts, which it does only where MIG can divide them."""

    decoders: int = 0
    encoders: int = 0
    jpegs: int = 0
    ofas: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A model of GPU: figures in W, Cel, MHz and bytes, and what it refuses, with which code.

    `thresholds` and `margins` are by their place in `nvmlTemperatureThresholds_t`: shutdown,
    slowdown, memory, GPU. `media` is how busy encoder, decoder, JPEG and OFA are at full load.
    `peers` is what a GPU can do with others, by `nvmlGpuP2PCapsIndex_t`: read, write, NVLink,
    atomics.
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
    profiled: bool = False  # whether it has GPM
    memory_total: int = 0
    memory_reserved: int = 0
    memory_heat: Heat | None = None
    memory_w: tuple[float, float] = (0.0, 0.0)
    unified_memory: int = 0  # of the CPU's, where it has none of its own; NVML does not tell it
    bar1_total: int = 0
    thresholds: tuple[int, ...] = ()
    margins: tuple[int, ...] = ()
    hottest: int = 85  # where the margin is used up
    idle_state: int = 0
    fans: int = 0
    fan_rpm: int = 0
    link: Link = Link(5, 5, 16)
    nvlink: NvLink = NvLink()
    fabric_health: int | None = None  # nvmlGpuFabricInfo_v3_t.healthMask; None: no fabric
    peers: tuple[int, int, int, int] = (OK, OK, NOT_SUPPORTED, NOT_SUPPORTED)
    engines: Engines = Engines()
    media: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    ecc: bool = True  # whether it is on
    banks: int = 0  # of memory, each with spare rows
    persistence: bool = True
    refuses: Refusals = field(default_factory=dict)
