"""What no true reading exceeds. Outside, a value is a driver's mistake or a sentinel: a gap."""

from __future__ import annotations

from collections.abc import Mapping

from otel_gpu.model import Kind, Metric

SENTINELS = frozenset({2**32 - 1, 2**64 - 1})  # NVML's 'not available', as the driver gives it
TOO_LARGE = 2**63  # OTLP's integers end here, and so does every count that NVML means

BOUNDS: Mapping[str, tuple[float, float]] = {
    "1": (0.0, 1.0),
    "Cel": (-50.0, 200.0),
    "W": (0.0, 20_000.0),
    "Hz": (0.0, 1e11),  # GDDR6X is told as 10.5 GHz, GDDR7 as 14
    "By": (0.0, 2.0**50),
    "By/s": (0.0, 1e13),
    "{pstate}": (0.0, 15.0),
    "J": (0.0, 1e15),
    "s": (0.0, 1e11),
    "rpm": (0.0, 1e5),
}
"""By UCUM unit, both ends included. A unit that is not here is a count."""

COUNT = (0, TOO_LARGE - 1)
FAN_RATIO = (0.0, 2.0)  # a fan may be driven above its nominal full speed


def bounds(metric: Metric) -> tuple[float, float]:
    """Give the closed range of a metric's points, in the metric's unit."""
    if metric.name == "hw.fan.speed_ratio":
        return FAN_RATIO
    if metric.kind is Kind.COUNTER and metric.unit == "By":
        return COUNT  # NVLink passes any memory's size within the hour
    return BOUNDS.get(metric.unit, COUNT)


def plausible(value: float, limits: tuple[float, float]) -> bool:
    """Whether a value in base units can be true; NaN and infinity cannot."""
    low, high = limits
    return low <= value <= high
