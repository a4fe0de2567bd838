"""WHAT can be measured: every metric as one record, a family a file.

Docs, simulation, configuration and the tests of each metric are made from these records.
"""

from __future__ import annotations

from otel_gpu.catalog import (
    agent,
    clocks,
    errors,
    events,
    health,
    info,
    memory,
    nvlink,
    pcie,
    power,
    processes,
    thermal,
    utilization,
)
from otel_gpu.catalog.census import faults
from otel_gpu.model import Metric

FAMILIES: dict[str, tuple[Metric, ...]] = {
    "utilization": utilization.METRICS,
    "memory": memory.METRICS,
    "power": power.METRICS,
    "thermal": thermal.METRICS,
    "clocks": clocks.METRICS,
    "pcie": pcie.METRICS,
    "nvlink": nvlink.METRICS,
    "errors": errors.METRICS,
    "health": health.METRICS,
    "events": events.METRICS,
    "processes": processes.METRICS,
    "info": info.METRICS,
    "agent": agent.METRICS,
}

CATALOG: tuple[Metric, ...] = tuple(metric for family in FAMILIES.values() for metric in family)

if found := faults(CATALOG):
    raise ValueError("the catalog has faults:\n" + "\n".join(found))
