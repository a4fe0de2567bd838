"""What boards do not offer, and with which code they say so.

Where nvml.h and NVIDIA's documents are silent, a board is given the refusal that a reader of it
must be able to live with.
"""

from __future__ import annotations

from collections.abc import Mapping

from otel_gpu.catalog.reading import FIELD
from otel_gpu.model import Code, Query

MEMORY_SCOPE = 2

Refusals = Mapping[str | Query, int]
"""A code by question, or by function whatever its arguments."""


def fields(*numbers: int, scope: int = 0, code: int = Code.NOT_SUPPORTED) -> Refusals:
    """Refuse fields with one code."""
    return {Query(FIELD, (number, scope)): code for number in numbers}


def calls(*names: str, code: int = Code.NOT_SUPPORTED) -> Refusals:
    """Refuse functions, whatever their arguments."""
    return dict.fromkeys((f"nvmlDeviceGet{name}" for name in names), code)


def asked(name: str, *arguments: int) -> Query:
    """Name one question."""
    return Query(f"nvmlDeviceGet{name}", arguments)


PASSIVE = calls("FanSpeed_v2", "FanSpeedRPM")
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
NO_ECC = {
    **calls("TotalEccErrors", "MemoryErrorCounter", "SramEccErrorStatus"),
    **fields(3, 4),
}
NO_REMAPPING = {**calls("RemappedRows", "RowRemapperHistogram"), **fields(142, 143, 144, 145)}
NO_RETIREMENT = calls("RetiredPages", "RetiredPagesPendingStatus")
NO_DAMAGE_FLAG = calls("UnrepairableMemoryFlag_v1")
NO_REPAIR = {**calls("RepairStatus"), **NO_DAMAGE_FLAG}
NO_MIG = calls("MigMode")

MIG_ON = {
    **calls("UtilizationRates", "EncoderUtilization", "DecoderUtilization"),
    **calls("JpgUtilization", "OfaUtilization"),
    **calls("ProcessesUtilizationInfo", "ProcessUtilization"),
    **NO_REMAPPING,
}
"""What a GPU refuses while it is divided into instances."""

BEFORE_R580 = {
    **calls("RepairStatus", "UnrepairableMemoryFlag_v1", code=Code.FUNCTION_NOT_FOUND),
    **fields(269, 270, 271),
}
"""What the library of the R570 branch has not yet."""

BEFORE_R535 = {
    **calls(
        "TemperatureV",
        "MarginTemperature",
        "FanSpeedRPM",
        "CurrentClocksEventReasons",
        "SupportedClocksEventReasons",
        "JpgUtilization",
        "OfaUtilization",
        "GpuFabricInfoV",
        "ProcessesUtilizationInfo",
        "SramEccErrorStatus",
        "RepairStatus",
        "UnrepairableMemoryFlag_v1",
        code=Code.FUNCTION_NOT_FOUND,
    ),
    **fields(*range(173, 184), code=Code.INVALID_ARGUMENT),
    **fields(*range(185, 191), *range(192, 197), code=Code.INVALID_ARGUMENT),
    **fields(230, 269, 270, 271, code=Code.INVALID_ARGUMENT),
    **fields(185, scope=MEMORY_SCOPE, code=Code.INVALID_ARGUMENT),
}
"""What the library of the R525 branch has not yet: functions and fields of R535 and later."""
