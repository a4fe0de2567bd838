"""The catalog as people read it: docs/metrics.md, and what `otel-gpu metrics` prints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from rich.table import Table

from otel_gpu.catalog import CATALOG, FAMILIES
from otel_gpu.catalog.ranges import bounds
from otel_gpu.model import Kind, Metric, Snapshot

HEAD = """# Metrics

Every metric of otel-gpu. This page is made from the catalog (`otel_gpu/catalog/`); `make render`
rewrites it.

- **tier**: how often it is read (`sampling` in the [configuration](configuration.md)): fast 1 s,
  default 5 s, slow 60 s, static once at every enumeration.
- **profile**: the smallest one that includes it (`metrics.profile`). The parts of a metric that
  need a larger profile are marked.
- **owner**: while one pod or job holds the GPU, the points carry its attributes. Lifetime counters
  and health do not, or each new pod would begin a new series: join them with
  `nvidia.gpu.allocation`.
- **range**: outside it a value is a driver's mistake; it is not published, and counted in
  `otel_gpu.reading.missing` with the reason `invalid`.

Every point of a GPU carries `hw.id` (its UUID) and `hw.name` (`nvidia0`: the device file); a MIG
instance also `hw.parent`, `nvidia.gpu.mig.profile`, `nvidia.gpu.mig.gpu_instance` and
`nvidia.gpu.mig.compute_instance`.
"""


def markdown(snapshot: Snapshot | None = None) -> str:
    """Write the page; with a snapshot also what each metric gave on each GPU."""
    return HEAD + "".join(family(name, snapshot) for name in FAMILIES)


def family(name: str, snapshot: Snapshot | None) -> str:
    """Write the section of one family, headed by what its module says of it."""
    text = (import_module(f"otel_gpu.catalog.{name}").__doc__ or "").strip()
    entries = "".join(entry(metric, snapshot) for metric in FAMILIES[name])
    return f"\n## {name.capitalize()}\n\n{text}\n{entries}"


def entry(metric: Metric, snapshot: Snapshot | None) -> str:
    """Write one metric."""
    facts = [f"{metric.kind}", f"unit `{metric.unit}`", f"tier {metric.tier}"]
    facts += [f"profile {metric.profile.name.lower()}"] + (["owner"] if metric.owner else [])
    low, high = bounds(metric)
    if metric.kind is not Kind.HISTOGRAM:
        facts.append(f"range {low:g} to {high:g}")
    lines = [f"\n### `{metric.name}`\n", metric.brief, "", f"{', '.join(facts)}.", ""]
    keys = [*(f"`{key}`=`{value}`" for key, value in metric.constant)]
    keys += [f"`{key}`" for key in metric.attributes]
    if keys:
        lines += [f"Attributes: {', '.join(keys)}.", ""]
    lines += [f"Source: {metric.read.source}.", ""]
    if metric.note:
        lines += [metric.note, ""]
    if metric.dcgm:
        lines += [f"In DCGM: {', '.join(f'`{name}`' for name in metric.dcgm)}.", ""]
    if snapshot:
        lines += [f"On {uuid}: {said}." for uuid, said in offered(snapshot)[metric.name].items()]
    return "\n".join(lines)


def offered(snapshot: Snapshot) -> Mapping[str, Mapping[str, str]]:
    """Say for each metric and GPU how many points it gave, and why others are missing."""
    said: dict[str, dict[str, str]] = defaultdict(dict)
    for reading in snapshot.readings:
        said[reading.metric.name][reading.device] = f"{len(reading.points)} points"
    for gap in snapshot.gaps:
        before = said[gap.metric].get(gap.device)
        why = f"{gap.missing.reason} ({gap.missing.detail})"
        said[gap.metric][gap.device] = f"{before}; {why}" if before else why
    return said


def rows(snapshot: Snapshot | None = None) -> list[dict[str, Any]]:
    """Give the catalog as plain values."""
    gave = offered(snapshot) if snapshot else {}
    return [
        {
            "name": metric.name,
            "family": name,
            "kind": str(metric.kind),
            "unit": metric.unit,
            "brief": metric.brief,
            "tier": str(metric.tier),
            "profile": metric.profile.name.lower(),
            "owner": metric.owner,
            "attributes": list(metric.attributes),
            "source": metric.read.source.replace("`", ""),
            "dcgm": list(metric.dcgm),
            **({"gpus": gave.get(metric.name, {})} if snapshot else {}),
        }
        for name, metrics in FAMILIES.items()
        for metric in metrics
    ]


def table(snapshot: Snapshot | None = None) -> Table:
    """Lay the catalog out for a terminal."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column("metric", overflow="fold", min_width=28)
    for heading in ("kind", "unit", "tier", "profile"):
        grid.add_column(heading, no_wrap=True)
    grid.add_column("what this machine offers" if snapshot else "what it says")
    for metric in CATALOG:
        cells = [metric.name, metric.kind, metric.unit, metric.tier, metric.profile.name.lower()]
        grid.add_row(*cells, "; ".join(on_gpus(snapshot, metric)) if snapshot else metric.brief)
    return grid


def on_gpus(snapshot: Snapshot, metric: Metric) -> list[str]:
    """Say what each GPU gives, the same words for several GPUs once."""
    names: dict[str, list[str]] = defaultdict(list)
    for uuid, said in offered(snapshot)[metric.name].items():
        device = snapshot.devices.get(uuid)
        names[said].append(device.name if device else uuid)
    return [f"{', '.join(gpus)}: {said}" for said, gpus in names.items()]
