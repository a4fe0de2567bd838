"""The few readings that a person looks at first, of each GPU in a collection, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from opentelemetry.sdk.metrics.export import Gauge, MetricsData, NumberDataPoint, Sum

Labels = Mapping[str, Any]


class Column(NamedTuple):
    """One reading: its metric, which of its points, and the text; "" where there is none."""

    title: str
    metric: str
    where: Mapping[str, str]
    text: Callable[[float, Labels], str]


COLUMNS = (
    Column(
        "utilization", "hw.gpu.utilization", {"hw.gpu.task": "general"}, lambda v, _: f"{v:.0%}"
    ),
    Column("memory", "hw.gpu.memory.usage", {}, lambda v, _: f"{v / 2**30:.1f} GiB"),
    Column("power", "hw.power", {}, lambda v, _: f"{v:.0f} W"),
    Column(
        "temperature", "hw.temperature", {"hw.sensor_location": "gpu"}, lambda v, _: f"{v:.0f} °C"
    ),
    Column("status", "hw.status", {}, lambda v, labels: str(labels.get("hw.state")) if v else ""),
)


class Glance(NamedTuple):
    """One GPU: its name, with the profile if it is a MIG instance, and its readings by title."""

    name: str
    readings: dict[str, str]


def glances(data: MetricsData | None) -> dict[str, Glance]:
    """Give the GPUs and MIG instances that a collection has readings of, by `hw.id`."""
    found: dict[str, Glance] = {}
    for column in COLUMNS:
        for point in _points(data, column.metric):
            labels = point.attributes or {}
            text = column.text(point.value, labels)
            if text and column.where.items() <= labels.items() and "hw.id" in labels:
                glance = found.setdefault(str(labels["hw.id"]), Glance(_name(labels), {}))
                glance.readings[column.title] = text
    return found


def _points(data: MetricsData | None, name: str) -> Iterable[NumberDataPoint]:
    for resource_metrics in data.resource_metrics if data else ():
        for scope_metrics in resource_metrics.scope_metrics:
            for metric in scope_metrics.metrics:
                if metric.name == name and isinstance(metric.data, Gauge | Sum):
                    yield from metric.data.data_points


def _name(labels: Labels) -> str:
    name = str(labels.get("hw.name", labels["hw.id"]))
    profile = labels.get("nvidia.gpu.mig.profile")
    instance = labels.get("nvidia.gpu.mig.gpu_instance")
    return name if profile is None else f"{name} {profile} {instance}"
