"""Memory errors and what was done about them: ECC, row remapping, page retirement, repair.

Volatile counters begin with the driver; lifetime ones are the board's own and outlive everything.
"""

from __future__ import annotations

from otel_gpu.catalog.forms import Split, Values
from otel_gpu.catalog.links import ByGeneration
from otel_gpu.catalog.reading import asking, call, either, field, labelled, split
from otel_gpu.catalog.shape import entries, whole
from otel_gpu.model import Device, Kind, Metric, Missing, Point, Profile, Query, Read, Tier

GPU = (("hw.type", "gpu"),)
CORRECTED, UNCORRECTED = 0, 1  # nvml.h, nvmlMemoryErrorType_t
VOLATILE, AGGREGATE = 0, 1  # nvml.h, nvmlEccCounterType_t
KINDS = {"corrected": CORRECTED, "uncorrected": UNCORRECTED}
LOCATIONS = {
    "l1": 0,
    "l2": 1,
    "dram": 2,
    "register_file": 3,
    "texture": 4,
    "shared": 5,
    "cbu": 6,
    "sram": 7,
}
"""nvml.h, nvmlMemoryLocation_t."""

SINCE_AMPERE = ("dram", "sram")
BEFORE_AMPERE = frozenset({"Kepler", "Maxwell", "Pascal", "Volta", "Turing"})

SRAM = Query("nvmlDeviceGetSramEccErrorStatus")
SRAM_SOURCES = {
    "l2": "aggregateUncBucketL2",
    "sm": "aggregateUncBucketSm",
    "pcie": "aggregateUncBucketPcie",
    "microcontroller": "aggregateUncBucketMcu",
    "other": "aggregateUncBucketOther",
}
BANKS = Query("nvmlDeviceGetRowRemapperHistogram")
BANK_STATES = ("max", "high", "partial", "low", "none")
CAUSES = {"multiple_single_bit": 0, "double_bit": 1}  # nvml.h, nvmlPageRetirementCause_t


def by_location(counter: int) -> Read:
    """Read one counter of each kind and location; newer GPUs tell of two locations only."""
    return ByGeneration(
        lambda device: device.architecture not in BEFORE_AMPERE,
        at_locations(counter, SINCE_AMPERE),
        at_locations(counter, tuple(LOCATIONS)),
    )


def at_locations(counter: int, locations: tuple[str, ...]) -> Read:
    """Read one counter of each kind at these locations."""
    return Split(
        tuple(
            labelled(
                call("nvmlDeviceGetMemoryErrorCounter", number, counter, LOCATIONS[location]),
                (("error.type", kind), ("nvidia.gpu.memory.location", location)),
            )
            for kind, number in KINDS.items()
            for location in locations
        )
    )


def members(query: Query, key: str, names: dict[str, str]) -> Read:
    """Read several members of one struct, each as a point."""

    def points(_device: Device, values: Values) -> list[Point] | Missing:
        return [
            Point(whole(values, query, member), ((key, name),)) for name, member in names.items()
        ]

    return asking((query,), points)


def pages(_device: Device, values: Values) -> list[Point] | Missing:
    """Count the pages that were retired for each cause."""
    return [
        Point(len(entries(values, query)), (("nvidia.gpu.page_retirement.cause", name),))
        for name, query in RETIRED.items()
    ]


RETIRED = {name: Query("nvmlDeviceGetRetiredPages", (cause,)) for name, cause in CAUSES.items()}

ERRORS = Metric(
    name="hw.errors",
    kind=Kind.COUNTER,
    unit="{error}",
    brief="Memory errors since the driver was loaded.",
    read=split(
        "error.type",
        {
            "corrected": either(field(3), call("nvmlDeviceGetTotalEccErrors", CORRECTED, VOLATILE)),
            "uncorrected": either(
                field(4), call("nvmlDeviceGetTotalEccErrors", UNCORRECTED, VOLATILE)
            ),
        },
    ),
    profile=Profile.CORE,
    attributes=("error.type",),
    constant=GPU,
    integer=True,
    typical=(0, 0),
    dcgm=("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"),
    note="Only while ECC is enabled.",
)

ECC_ERRORS = Metric(
    name="nvidia.gpu.ecc.errors",
    kind=Kind.COUNTER,
    unit="{error}",
    brief="Memory errors by location, since the driver was loaded.",
    read=by_location(VOLATILE),
    tier=Tier.SLOW,
    profile=Profile.FULL,
    attributes=("error.type", "nvidia.gpu.memory.location"),
    integer=True,
    typical=(0, 0),
)

ECC_LIFETIME_ERRORS = Metric(
    name="nvidia.gpu.ecc.lifetime_errors",
    kind=Kind.COUNTER,
    unit="{error}",
    brief="Memory errors by location over the life of the board.",
    read=by_location(AGGREGATE),
    tier=Tier.SLOW,
    attributes=("error.type", "nvidia.gpu.memory.location"),
    integer=True,
    typical=(0, 0),
    dcgm=("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL"),
)

SRAM_ERRORS = Metric(
    name="nvidia.gpu.ecc.sram.errors",
    kind=Kind.COUNTER,
    unit="{error}",
    brief="Uncorrected SRAM errors over the life of the board, by where they were.",
    read=members(SRAM, "nvidia.gpu.sram.source", SRAM_SOURCES),
    tier=Tier.SLOW,
    profile=Profile.FULL,
    attributes=("nvidia.gpu.sram.source",),
    integer=True,
    typical=(0, 0),
    note="The driver may tell it to root alone.",
)

SRAM_THRESHOLD = Metric(
    name="nvidia.gpu.ecc.sram.threshold_exceeded",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="1 when the board had more uncorrected SRAM errors than its maker tolerates, else 0.",
    read=call(SRAM.call, path=("bThresholdExceeded",)),
    tier=Tier.SLOW,
    integer=True,
    typical=(0, 0),
    note="The driver may tell it to root alone.",
)

REMAPPED_ROWS = Metric(
    name="nvidia.gpu.row_remap.rows",
    kind=Kind.COUNTER,
    unit="{row}",
    brief="Memory rows that were replaced by spare ones, over the life of the board.",
    read=split(
        "error.type",
        {
            "corrected": either(field(142), call("nvmlDeviceGetRemappedRows", path=(0,))),
            "uncorrected": either(field(143), call("nvmlDeviceGetRemappedRows", path=(1,))),
        },
    ),
    tier=Tier.SLOW,
    attributes=("error.type",),
    integer=True,
    typical=(0, 0),
    dcgm=("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"),
)

REMAP_PENDING = Metric(
    name="nvidia.gpu.row_remap.pending",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="1 when a row waits for the next reset to be replaced, else 0.",
    read=either(field(144), call("nvmlDeviceGetRemappedRows", path=(2,))),
    tier=Tier.SLOW,
    integer=True,
    typical=(0, 0),
    dcgm=("DCGM_FI_DEV_ROW_REMAP_PENDING",),
)

REMAP_FAILED = Metric(
    name="nvidia.gpu.row_remap.failed",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="1 when a row could not be replaced, else 0.",
    read=either(field(145), call("nvmlDeviceGetRemappedRows", path=(3,))),
    tier=Tier.SLOW,
    integer=True,
    typical=(0, 0),
    dcgm=("DCGM_FI_DEV_ROW_REMAP_FAILURE",),
)

BANK_STATUS = Metric(
    name="nvidia.gpu.row_remap.bank.status",
    kind=Kind.UPDOWNCOUNTER,
    unit="{bank}",
    brief="Memory banks by how many spare rows they have left.",
    read=members(BANKS, "nvidia.gpu.row_remap.bank.state", {name: name for name in BANK_STATES}),
    tier=Tier.SLOW,
    profile=Profile.FULL,
    attributes=("nvidia.gpu.row_remap.bank.state",),
    integer=True,
    typical=(0, 3072),
)

RETIRED_PAGES = Metric(
    name="nvidia.gpu.page_retirement.pages",
    kind=Kind.COUNTER,
    unit="{page}",
    brief="Memory pages that are no longer used, over the life of the board.",
    read=asking(tuple(RETIRED.values()), pages),
    tier=Tier.SLOW,
    attributes=("nvidia.gpu.page_retirement.cause",),
    integer=True,
    typical=(0, 0),
    dcgm=("DCGM_FI_DEV_RETIRED_SBE", "DCGM_FI_DEV_RETIRED_DBE"),
    note="Before Ampere, which remaps rows instead.",
)

RETIREMENT_PENDING = Metric(
    name="nvidia.gpu.page_retirement.pending",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="1 when a page waits for the next reset to be retired, else 0.",
    read=call("nvmlDeviceGetRetiredPagesPendingStatus"),
    tier=Tier.SLOW,
    integer=True,
    typical=(0, 0),
    dcgm=("DCGM_FI_DEV_RETIRED_PENDING",),
)

REPAIR_PENDING = Metric(
    name="nvidia.gpu.memory.repair.pending",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="1 when a repair waits for the next reset, else 0.",
    read=split(
        "nvidia.gpu.memory.repair.target",
        {
            "channel": call("nvmlDeviceGetRepairStatus", path=(0,)),
            "tpc": call("nvmlDeviceGetRepairStatus", path=(1,)),
        },
    ),
    tier=Tier.SLOW,
    attributes=("nvidia.gpu.memory.repair.target",),
    integer=True,
    typical=(0, 0),
)

UNREPAIRABLE = Metric(
    name="nvidia.gpu.memory.unrepairable",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="1 when memory is damaged beyond repair, else 0.",
    read=call("nvmlDeviceGetUnrepairableMemoryFlag_v1"),
    tier=Tier.SLOW,
    integer=True,
    typical=(0, 0),
)

METRICS = (
    ERRORS,
    ECC_ERRORS,
    ECC_LIFETIME_ERRORS,
    SRAM_ERRORS,
    SRAM_THRESHOLD,
    REMAPPED_ROWS,
    REMAP_PENDING,
    REMAP_FAILED,
    BANK_STATUS,
    RETIRED_PAGES,
    RETIREMENT_PENDING,
    REPAIR_PENDING,
    UNREPAIRABLE,
)
