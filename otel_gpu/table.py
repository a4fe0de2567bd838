"""A snapshot as a table for a terminal: one line a GPU or MIG instance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rich.table import Table

from otel_gpu.model import Attributes, Device, Reading, Snapshot

NONE = "-"
NAME = 40  # characters of a name: a container's id is longer
GIB = 2**30

Values = Mapping[tuple[str, str, Attributes], float]


def table(snapshot: Snapshot) -> Table:
    """Lay out what people look for first, in 80 columns. A dash is missing: see `doctor`."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column("GPU", no_wrap=True)
    grid.add_column("model", no_wrap=True)
    for heading in ("util", "memory GiB", "power W", "Cel", "SM MHz", "gaps"):
        grid.add_column(heading, justify="right", no_wrap=True)
    if snapshot.owners:
        grid.add_column("held by", overflow="fold")  # the one that gives way
    values = by_place(snapshot.readings)
    missing = Counter(gap.device for gap in snapshot.gaps)
    for uuid, device in snapshot.devices.items():
        cells = row(values, uuid) if snapshot.up.get(uuid) else [NONE] * 5
        cells = [label(device), model(device), *cells, str(missing[uuid] or NONE)]
        grid.add_row(*cells, *([owner(snapshot, uuid)] if snapshot.owners else []))
    return grid


def by_place(readings: tuple[Reading, ...]) -> Values:
    """Put every value under its GPU, metric and attributes."""
    return {
        (reading.device, reading.metric.name, point.attributes): point.value
        for reading in readings
        for point in reading.points
    }


def row(values: Values, uuid: str) -> list[str]:
    """Give the cells of one GPU, in the units that people read."""

    def cell(metric: str, attributes: Attributes, scale: float, digits: int = 0) -> str:
        value = values.get((uuid, metric, attributes))
        return NONE if value is None else f"{value * scale:.{digits}f}"

    used = cell("hw.gpu.memory.usage", (), 1 / GIB, 1)
    total = cell("hw.gpu.memory.limit", (), 1 / GIB, 1)
    busy = cell("hw.gpu.utilization", (("hw.gpu.task", "general"),), 100)
    power = cell("hw.power", (), 1)
    cap = cell("nvidia.gpu.power.limit", (("hw.limit_type", "enforced"),), 1)
    return [
        busy if busy == NONE else f"{busy} %",
        NONE if used == total == NONE else f"{used}/{total}",
        power if cap == NONE else f"{power}/{cap}",
        cell("hw.temperature", (("hw.sensor_location", "gpu"),), 1),
        cell("nvidia.gpu.clock.frequency", (("nvidia.gpu.clock.domain", "sm"),), 1e-6),
    ]


def label(device: Device) -> str:
    """Name a GPU by its device file, and an instance by its place in it."""
    if device.is_instance:
        return f"  {device.gpu_instance}/{device.compute_instance}"
    return device.name


def model(device: Device) -> str:
    """Name what a GPU is, and what an instance has of it."""
    if device.is_instance:
        return f"MIG {device.mig_profile}"
    return device.model.removeprefix("NVIDIA ")


def owner(snapshot: Snapshot, uuid: str) -> str:
    """Name who holds a GPU, and how many others do; a container only where it is all there is."""
    owners = snapshot.owners.get(uuid, ())
    if not owners:
        return NONE
    others = len(owners) - 1
    known = dict(owners[0].attributes)
    if "k8s.pod.name" in known:
        known = {key: known[key] for key in ("k8s.namespace.name", "k8s.pod.name") if key in known}
    words = "/".join(str(value)[:NAME] for value in known.values())
    return f"{words} +{others}" if others else words
