"""Memory errors and repairs of a simulated GPU: it counts none, and says so where it counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_gpu.backends.simulation.physics import Gpu
from otel_gpu.backends.simulation.shapes import Moment, Reply, nothing, state
from otel_gpu.catalog.errors import BANK_STATES, BANKS, LOCATIONS, SRAM, SRAM_SOURCES
from otel_gpu.model import Answer, Code

COUNTING = frozenset({LOCATIONS["dram"], LOCATIONS["sram"]})  # nvml.h: since Turing
VERSION_1 = 0x1000068  # of nvmlEccSramErrorStatus_v1_t
SRAM_MEMBERS = (
    *(
        f"{since}{kind}"
        for since in ("aggregate", "volatile")
        for kind in ("UncParity", "UncSecDed", "Cor")
    ),
    *SRAM_SOURCES.values(),
    "bThresholdExceeded",
)


def total(_: Gpu, __: Moment, args: tuple[int, ...]) -> int | Answer:
    """Count the errors of a kind, since the driver was loaded or over the board's life."""
    return 0 if len(args) == 2 and set(args) <= {0, 1} else Answer(Code.INVALID_ARGUMENT)


def located(_: Gpu, __: Moment, args: tuple[int, ...]) -> int | Answer:
    """Count the same in one place; only two places count."""
    if len(args) != 3 or not set(args[:2]) <= {0, 1} or args[2] not in LOCATIONS.values():
        return Answer(Code.INVALID_ARGUMENT)
    return 0 if args[2] in COUNTING else Answer(Code.NOT_SUPPORTED)


def sram(_: Gpu, __: Moment, ___: tuple[int, ...]) -> dict[str, int]:
    """Give an `nvmlEccSramErrorStatus_v1_t`."""
    return {"version": VERSION_1, **dict.fromkeys(SRAM_MEMBERS, 0)}


def banks(gpu: Gpu, _: int) -> dict[str, int]:
    """Give an `nvmlRowRemapperHistogramValues_t`: no bank has used a spare row."""
    return {**dict.fromkeys(BANK_STATES, 0), "max": gpu.board.banks}


def retired(_: Gpu, __: Moment, args: tuple[int, ...]) -> list[Any] | Answer:
    """List the pages that were retired for a cause."""
    return [] if args in {(0,), (1,)} else Answer(Code.INVALID_ARGUMENT)


CALLS: Mapping[str, Reply] = {
    "nvmlDeviceGetTotalEccErrors": total,
    "nvmlDeviceGetMemoryErrorCounter": located,
    SRAM.call: sram,
    "nvmlDeviceGetRemappedRows": lambda *_: [0, 0, 0, 0],
    BANKS.call: state(banks),
    "nvmlDeviceGetRetiredPages": retired,
    "nvmlDeviceGetRetiredPagesPendingStatus": nothing,
    "nvmlDeviceGetRepairStatus": lambda *_: [0, 0],
    "nvmlDeviceGetUnrepairableMemoryFlag_v1": nothing,
}
"""By function."""

FIELDS: Mapping[tuple[int, ...], Reply] = {
    (number, 0): nothing for number in (3, 4, 142, 143, 144, 145)
}
"""By field id and scope."""
