"""Which reading each GPU gives, and why not: metric by GPU, out of one snapshot. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

from otel_gpu.model import Device, Metric, Missing, Reason, Snapshot, Tier
from otel_gpu.sweep import applicable

OK, PARTIAL, NOTHING = "ok", "partial", "nothing"


@dataclass(frozen=True, slots=True)
class Cell:
    """One metric on one GPU: how many points were read, and which were not."""

    points: int = 0
    missing: tuple[Missing, ...] = ()

    @property
    def state(self) -> str:
        """`ok`, `partial`, `nothing` (no such part, and so nothing to read), or the reason."""
        if self.points:
            return PARTIAL if self.missing else OK
        return str(self.missing[0].reason) if self.missing else NOTHING

    @property
    def details(self) -> tuple[str, ...]:
        """Say of each missing point which, why, and what NVML was asked."""
        return tuple(detail(missing) for missing in self.missing)


@dataclass(frozen=True, slots=True)
class Row:
    """A metric on each device, in the matrix's order; None where it is read of the parent."""

    metric: str
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Every metric that was asked for, on every GPU and MIG instance that is there."""

    devices: tuple[Device, ...] = ()
    rows: tuple[Row, ...] = ()
    up: tuple[bool, ...] = ()  # whether each device answered last

    def cells(self) -> Iterator[tuple[str, Device, Cell]]:
        """Go through it: metric, device and cell."""
        for row in self.rows:
            for device, cell in zip(self.devices, row.cells, strict=True):
                if cell is not None:
                    yield row.metric, device, cell

    def answering(self) -> Matrix:
        """Leave out the devices that answered nothing: of them, there is nothing more to say."""
        rows = (Row(row.metric, tuple(compress(row.cells, self.up))) for row in self.rows)
        devices = tuple(compress(self.devices, self.up))
        return Matrix(devices, tuple(rows), (True,) * len(devices))

    @property
    def silent(self) -> tuple[Device, ...]:
        """The devices that answered nothing."""
        return tuple(device for device, up in zip(self.devices, self.up, strict=True) if not up)

    def gaps(self, reasons: Iterable[Reason]) -> Mapping[str, tuple[str, ...]]:
        """Give the GPUs by metric on which all, or a part, is missing for one of these reasons."""
        wanted = frozenset(reasons)
        found: dict[str, list[str]] = defaultdict(list)
        for metric, device, cell in self.cells():
            if any(missing.reason in wanted for missing in cell.missing):
                found[f"{metric} (in part)" if cell.points else metric].append(label(device))
        return {metric: tuple(names) for metric, names in found.items()}


def support(snapshot: Snapshot, metrics: Sequence[Metric]) -> Matrix:
    """Lay out what a snapshot holds of these metrics. Those that come as events are left out."""
    points = {(one.metric.name, one.device): len(one.points) for one in snapshot.readings}
    missing: dict[tuple[str, str], list[Missing]] = defaultdict(list)
    for gap in snapshot.gaps:
        missing[gap.metric, gap.device].append(gap.missing)
    devices = tuple(snapshot.devices.values())
    read = {one.uuid: set(applicable(swept(metrics), one)) for one in devices}

    def cell(metric: Metric, device: Device) -> Cell | None:
        key = metric.name, device.uuid
        wanted = metric in read[device.uuid]
        return Cell(points.get(key, 0), tuple(missing.get(key, ()))) if wanted else None

    rows = (Row(one.name, tuple(cell(one, device) for device in devices)) for one in swept(metrics))
    up = tuple(snapshot.up.get(device.uuid, False) for device in devices)
    return Matrix(devices, tuple(row for row in rows if any(row.cells)), up)


def swept(metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    """Give the metrics that a sweep asks for."""
    return tuple(metric for metric in metrics if metric.tier is not Tier.EVENT)


def label(device: Device) -> str:
    """Name a GPU by its device file, and an instance also by its place on it."""
    if not device.is_instance:
        return device.name
    return f"{device.name}/gi{device.gpu_instance}/ci{device.compute_instance}"


def detail(missing: Missing) -> str:
    """Say of a missing point which, why, and what NVML was asked."""
    which = ",".join(f"{key}={value}" for key, value in missing.attributes)
    return f"{f'{which}: ' if which else ''}{missing.reason}: {missing.detail}"
