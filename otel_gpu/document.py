"""A snapshot as a document of plain values: what `once --format json` and `/debug/status` show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from otel_gpu.model import Gap, Reading, Snapshot


def document(snapshot: Snapshot) -> dict[str, Any]:
    """Give the machine, and each GPU with its identity, its readings and what it lacks."""
    readings: dict[str, list[Reading]] = defaultdict(list)
    gaps: dict[str, list[Gap]] = defaultdict(list)
    for reading in snapshot.readings:
        readings[reading.device].append(reading)
    for gap in snapshot.gaps:
        gaps[gap.device].append(gap)
    return {
        "time": datetime.fromtimestamp(snapshot.time_ns / 1e9, UTC).isoformat(),
        "driver_version": snapshot.system.driver_version,
        "nvml_version": snapshot.system.nvml_version,
        "cuda_version": snapshot.system.cuda_version,
        "library": snapshot.system.library,
        "trouble": snapshot.trouble or None,
        "hung": [{"function": function, "gpu": uuid} for function, uuid in snapshot.hung],
        "refused": [asdict(refused) for refused in snapshot.system.refused],
        "gpus": [
            {
                "identity": {key: value for key, value in asdict(device).items() if value != ""},
                "up": snapshot.up.get(uuid, False),
                "owners": [dict(owner.attributes) for owner in snapshot.owners.get(uuid, ())],
                "metrics": {reading.metric.name: shape(reading) for reading in readings[uuid]},
                "missing": [lack(gap) for gap in gaps[uuid]],
            }
            for uuid, device in snapshot.devices.items()
        ],
    }


def shape(reading: Reading) -> Mapping[str, Any]:
    """Give a metric's unit and its points."""
    return {
        "unit": reading.metric.unit,
        "points": [
            {"value": point.value, "attributes": dict(point.attributes)} for point in reading.points
        ],
    }


def lack(gap: Gap) -> Mapping[str, Any]:
    """Give what is missing and why."""
    return {
        "metric": gap.metric,
        "attributes": dict(gap.missing.attributes),
        "reason": str(gap.missing.reason),
        "detail": gap.missing.detail,
    }
