"""What nvml.h says of NVML's numbers: in which unit each comes, and what it is a number of.

Written from nvml.h, not from the catalog: these are the facts that the catalog is held against.
A metric that asks for the neighbour of what it is named after, or takes milliwatts for watts, shows
another number than is written here. What a number is of stands in the catalog's words: the words of
the metric's name, then behind a bar the values of the point's attributes. `hw`, `nvidia`, `gpu` and
`otel_gpu` are left out, and the order does not matter.

A new source of the catalog needs a row here, and a function that the fake library has no body for
yet needs one in `source/`. What is made of several answers stands in `scenes.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from otel_gpu.model import Query

HOPPER, VOLTA, BLACKWELL, SLICE = "hopper", "volta", "blackwell", "slice"
GPUS = frozenset({HOPPER, VOLTA, BLACKWELL})
PROFILED = frozenset({HOPPER, BLACKWELL})  # GPM begins with Hopper
EVERYWHERE = GPUS | {SLICE}
FIELD, METRIC = "nvmlDeviceGetFieldValues", "nvmlGpmMetricsGet"
ALL_LINKS = 0xFFFFFFFF
SILENT = frozenset({"hw", "nvidia", "gpu", "otel_gpu"})

Step = str | int
Words = frozenset[str]


@dataclass(frozen=True)
class Thing:
    """What a number is of: the words of a metric's name, and those of a point's attributes."""

    name: Words
    attributes: Words

    @classmethod
    def of(cls, text: str) -> Thing:
        """Read "power limit | enforced"."""
        name, _, attributes = text.partition("|")
        return cls(frozenset(name.split()) - SILENT, frozenset(attributes.split()) - SILENT)

    def __str__(self) -> str:
        return " | ".join(" ".join(sorted(words)) for words in (self.name, self.attributes))


NOTHING = Thing.of("")


@dataclass(frozen=True)
class Source:
    """A number that NVML gives: by which question, where in the answer, in which unit, of what.

    `member` is its place in what C writes, `path` its place in what the backend answers.
    """

    query: Query
    unit: str
    thing: Thing = NOTHING
    member: Step | None = None
    path: tuple[Step, ...] = ()
    boards: frozenset[str] = GPUS

    @property
    def real(self) -> bool:
        """Whether it is a double."""
        return self.query.call == METRIC

    def __str__(self) -> str:
        return f"{self.query}{'' if self.member is None else f' {self.member}'}"


def number(call: str, unit: str, of: str = "", *args: int, boards: frozenset[str] = GPUS) -> Source:
    """Describe a function that gives one number."""
    return Source(Query(call, args), unit, Thing.of(of), boards=boards)


def several(call: str, *numbers: tuple[str, str]) -> Iterator[Source]:
    """Describe a function that gives several numbers, by their units and what they are of."""
    for place, (unit, of) in enumerate(numbers):
        yield Source(Query(call), unit, Thing.of(of), place, (place,))


def struct(
    call: str,
    members: Mapping[str, tuple[str, str]],
    *args: int,
    boards: frozenset[str] = GPUS,
) -> Iterator[Source]:
    """Describe a function that fills a struct."""
    for name, (unit, of) in members.items():
        yield Source(Query(call, args), unit, Thing.of(of), name, (name,), boards)


def unpacked(sources: Iterator[Source], *, many: bool = False) -> Iterator[Source]:
    """Say that pynvml gives the one number of a struct by itself, or many as a list."""
    for place, source in enumerate(sources):
        yield replace(source, path=(place,) if many else ())


def fields(
    rows: Mapping[int, tuple[str, str]], scope: int = 0, boards: frozenset[str] = GPUS
) -> Iterator[Source]:
    """Describe fields, by the numbers of current headers."""
    for field, (unit, of) in rows.items():
        yield number(FIELD, unit, of, field, scope, boards=boards)


def metrics(
    unit: str, rows: Mapping[int, str], boards: frozenset[str] = PROFILED
) -> Iterator[Source]:
    """Describe metrics of GPM."""
    for metric, of in rows.items():
        yield number(METRIC, unit, of, metric, boards=boards)


CLOCKS = {0: "graphics", 1: "sm", 2: "memory", 3: "video"}  # nvml.h, nvmlClockType_t
THRESHOLDS = {0: "high.critical", 1: "throttled", 2: "memory max", 3: "max"}
MARGINS = {193: "high.critical", 194: "throttled", 195: "memory max", 196: "max"}
LIMITS = {187: "min", 188: "max", 189: "default", 190: "enforced", 192: "requested"}
REASON_TIMES = {
    74: "sw_power_cap",
    76: "sync_boost",
    77: "board_limit",
    269: "sw_thermal",
    270: "hw_thermal",
    271: "hw_power_brake",
}
PCIE_ERRORS = {
    95: "replay_rollover",
    169: "l0_to_recovery",
    173: "correctable",
    174: "naks_received",
    175: "receiver",
    176: "bad_tlp",
    177: "naks_sent",
    178: "bad_dllp",
    179: "non_fatal",
    180: "fatal",
    181: "unsupported_request",
    182: "lcrc",
    183: "lane",
}
NVLINK_5_ERRORS = {
    206: "malformed_packet",
    207: "buffer_overrun",
    208: "receive",
    209: "receive_remote",
    210: "receive_general",
    211: "local_link_integrity",
    212: "transmit_discard",
    214: "recovery_failed",
    219: "effective",
    221: "symbol",
}
ERRORS = {0: "corrected", 1: "uncorrected"}  # nvml.h, nvmlMemoryErrorType_t
COUNTERS = {0: "errors", 1: "lifetime_errors"}  # nvml.h, nvmlEccCounterType_t: volatile, aggregate
LOCATIONS = ("l1", "l2", "dram", "register_file", "texture", "shared", "cbu", "sram")
SINCE_AMPERE = frozenset({"dram", "sram"})  # newer GPUs tell of no other location
SRAM_BUCKETS = {
    "aggregateUncBucketL2": "l2",
    "aggregateUncBucketSm": "sm",
    "aggregateUncBucketPcie": "pcie",
    "aggregateUncBucketMcu": "microcontroller",
    "aggregateUncBucketOther": "other",
}
UTILIZATIONS = {
    1: "engine utilization | graphics",
    2: "sm utilization",
    3: "sm occupancy",
    4: "pipe utilization | integer",
    5: "pipe utilization | tensor",
    6: "pipe utilization | tensor_dfma",
    7: "pipe utilization | tensor_hmma",
    8: "pipe utilization | tensor_dmma",
    9: "pipe utilization | tensor_imma",
    10: "dram utilization",
    11: "pipe utilization | fp64",
    12: "pipe utilization | fp32",
    13: "pipe utilization | fp16",
}
ENGINES = {"nvdec": (30, 8), "nvjpg": (40, 8), "nvofa": (50, 2), "nvenc": (166, 4)}
"""What the engines are called: the first id of each kind, and how many ids nvml.h has for it."""

SOURCES: tuple[Source, ...] = (
    # Utilization
    *struct(
        "nvmlDeviceGetUtilizationRates",
        {"gpu": ("%", "utilization | general"), "memory": ("%", "memory_controller utilization")},
    ),
    *several("nvmlDeviceGetEncoderUtilization", ("%", "utilization | encoder"), ("us", "")),
    *several("nvmlDeviceGetDecoderUtilization", ("%", "utilization | decoder"), ("us", "")),
    *several("nvmlDeviceGetJpgUtilization", ("%", "utilization | jpeg"), ("us", "")),
    *several("nvmlDeviceGetOfaUtilization", ("%", "utilization | ofa"), ("us", "")),
    *metrics("%", UTILIZATIONS, PROFILED | {SLICE}),
    *metrics(
        "%",
        {
            first + place: f"engine utilization | {engine}{place}"
            for engine, (first, count) in ENGINES.items()
            for place in range(count)
        },
    ),
    # Memory
    *struct(
        "nvmlDeviceGetMemoryInfo_v2",
        {
            "total": ("B", "memory limit"),
            "reserved": ("B", "memory reserved"),
            "free": ("B", "memory free"),
            "used": ("B", "memory usage"),
        },
        boards=EVERYWHERE,
    ),
    *struct(
        "nvmlDeviceGetBAR1MemoryInfo",
        {"bar1Total": ("B", "bar1 limit"), "bar1Used": ("B", "bar1 usage"), "bar1Free": ("B", "")},
    ),
    # Power and energy. From Ampere on, GetPowerUsage is an average.
    *fields({185: ("mW", "power average"), 186: ("mW", "power")}),
    *fields({185: ("mW", "memory power")}, scope=2),
    number("nvmlDeviceGetPowerUsage", "mW", "power average", boards=PROFILED),
    number("nvmlDeviceGetPowerUsage", "mW", "power", boards=frozenset({VOLTA})),
    number("nvmlDeviceGetTotalEnergyConsumption", "mJ", "energy"),
    *fields({field: ("mW", f"power limit | {kind}") for field, kind in LIMITS.items()}),
    number("nvmlDeviceGetEnforcedPowerLimit", "mW", "power limit | enforced"),
    number("nvmlDeviceGetPowerManagementLimit", "mW", "power limit | requested"),
    number("nvmlDeviceGetPowerManagementDefaultLimit", "mW", "power limit | default"),
    # Heat
    *unpacked(
        struct("nvmlDeviceGetTemperatureV", {"temperature": ("degC", "temperature | gpu")}, 0)
    ),
    number("nvmlDeviceGetTemperature", "degC", "temperature | gpu", 0),
    *fields({82: ("degC", "temperature | memory")}),
    *(
        number("nvmlDeviceGetTemperatureThreshold", "degC", f"temperature limit | {kind}", which)
        for which, kind in THRESHOLDS.items()
    ),
    *unpacked(
        struct(
            "nvmlDeviceGetMarginTemperature", {"marginTemperature": ("degC", "temperature margin")}
        )
    ),
    *fields({field: ("degC", f"temperature margin limit | {x}") for field, x in MARGINS.items()}),
    *(
        number("nvmlDeviceGetFanSpeed_v2", "%", f"fan speed_ratio | fan{place}", place)
        for place in range(8)
    ),
    *unpacked(struct("nvmlDeviceGetFanSpeedRPM", {"speed": ("rpm", "fan speed target")})),
    # Clocks
    *(
        number("nvmlDeviceGetClockInfo", "MHz", f"clock frequency | {domain}", which)
        for which, domain in CLOCKS.items()
    ),
    *(
        number("nvmlDeviceGetMaxClockInfo", "MHz", f"clock limit | {domain}", which)
        for which, domain in CLOCKS.items()
    ),
    number("nvmlDeviceGetPerformanceState", "pstate", "performance_state"),
    *fields({field: ("ns", f"clock reason time | {x}") for field, x in REASON_TIMES.items()}),
    # PCIe, as the GPU sees it: transmit is out of it
    number("nvmlDeviceGetPcieThroughput", "KB/s", "pcie throughput | transmit", 0),
    number("nvmlDeviceGetPcieThroughput", "KB/s", "pcie throughput | receive", 1),
    *metrics("MiB/s", {20: "pcie throughput | transmit", 21: "pcie throughput | receive"}),
    number("nvmlDeviceGetCurrPcieLinkGeneration", "count", "pcie link generation"),
    number("nvmlDeviceGetCurrPcieLinkWidth", "count", "pcie link width"),
    number("nvmlDeviceGetMaxPcieLinkGeneration", "count", "pcie link max_generation"),
    number("nvmlDeviceGetMaxPcieLinkWidth", "count", "pcie link max_width"),
    number("nvmlDeviceGetPcieReplayCounter", "count", "pcie replays"),
    *fields({field: ("count", f"pcie errors | {kind}") for field, kind in PCIE_ERRORS.items()}),
    # NVLink and C2C
    *fields({138: ("KiB", "nvlink io | transmit"), 139: ("KiB", "nvlink io | receive")}, ALL_LINKS),
    *metrics("MiB/s", {60: "nvlink throughput | receive", 61: "nvlink throughput | transmit"}),
    *metrics(
        "MiB/s",
        {100: "c2c throughput | transmit", 101: "c2c throughput | receive"},
        frozenset({BLACKWELL}),
    ),
    *fields(
        {field: ("count", f"nvlink errors | {kind}") for field, kind in NVLINK_5_ERRORS.items()},
        ALL_LINKS,
        frozenset({BLACKWELL}),
    ),
    *fields({213: ("count", "nvlink recoveries")}, ALL_LINKS, frozenset({BLACKWELL})),
    # Errors and health
    *fields({3: ("count", "errors | corrected"), 4: ("count", "errors | uncorrected")}),
    *(
        number("nvmlDeviceGetTotalEccErrors", "count", f"errors | {kind}", error, 0)
        for error, kind in ERRORS.items()
    ),
    *(
        number(
            "nvmlDeviceGetMemoryErrorCounter",
            "count",
            f"ecc {what} | {kind} {where}",
            error,
            counter,
            location,
            boards=GPUS if where in SINCE_AMPERE else frozenset({VOLTA}),
        )
        for error, kind in ERRORS.items()
        for counter, what in COUNTERS.items()
        for location, where in enumerate(LOCATIONS)
    ),
    *struct(
        "nvmlDeviceGetSramEccErrorStatus",
        {
            **{name: ("count", f"ecc sram errors | {x}") for name, x in SRAM_BUCKETS.items()},
            "bThresholdExceeded": ("flag", "ecc sram threshold_exceeded"),
        },
    ),
    *fields(
        {
            142: ("count", "row_remap rows | corrected"),
            143: ("count", "row_remap rows | uncorrected"),
            144: ("flag", "row_remap pending"),
            145: ("flag", "row_remap failed"),
        }
    ),
    *several(
        "nvmlDeviceGetRemappedRows",
        ("count", "row_remap rows | corrected"),
        ("count", "row_remap rows | uncorrected"),
        ("flag", "row_remap pending"),
        ("flag", "row_remap failed"),
    ),
    *struct(
        "nvmlDeviceGetRowRemapperHistogram",
        {
            **{
                state: ("count", f"row_remap bank status | {state}")
                for state in ("max", "high", "partial", "low")
            },
            "none": ("rare", "row_remap bank status | none"),
        },
    ),
    number("nvmlDeviceGetRetiredPagesPendingStatus", "flag", "page_retirement pending"),
    *unpacked(
        struct(
            "nvmlDeviceGetRepairStatus",
            {
                "bChannelRepairPending": ("flag", "memory repair pending | channel"),
                "bTpcRepairPending": ("flag", "memory repair pending | tpc"),
            },
        ),
        many=True,
    ),
    *unpacked(
        struct(
            "nvmlDeviceGetUnrepairableMemoryFlag_v1",
            {"bUnrepairableMemory": ("flag", "memory unrepairable")},
        )
    ),
    # Sessions and modes
    *several(
        "nvmlDeviceGetEncoderStats",
        ("count", "encoder session active"),
        ("fps", "encoder frames"),
        ("us", "encoder latency"),
    ),
    *struct("nvmlDeviceGetFBCStats", {"sessionsCount": ("count", "capture session active")}),
    number("nvmlDeviceGetPersistenceMode", "flag", "persistence enabled"),
    *several("nvmlDeviceGetEccMode", ("flag", "ecc enabled"), ("flag", "")),
)

INTEGRALS: tuple[Source, ...] = (
    *metrics(
        "%",
        {
            1: "engine time | graphics",
            2: "engine time | sm",
            5: "engine time | tensor",
            10: "engine time | dram",
        },
        PROFILED | {SLICE},
    ),
    *metrics("MiB/s", {20: "io | transmit", 21: "io | receive"}),
)
"""What a metric of GPM is when it is integrated over time: percent become seconds, rates bytes."""
