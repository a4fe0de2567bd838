"""What the tests of the provider share: callbacks, Resources, and what was collected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics.export import (
    InMemoryMetricReader,
    Metric,
    MetricsData,
)
from opentelemetry.sdk.resources import Resource

from otel_gpu.model import ResourceKey, Series

GPU0, GPU1 = ResourceKey("GPU-0"), ResourceKey("GPU-1")


@dataclass(frozen=True)
class Reading:
    """What a callback yields for a series that is kept."""

    value: Any
    series: Series


def resources(key: ResourceKey) -> Resource:
    attributes = {"service.name": "test"} | ({"hw.id": key.device} if key.device else {})
    if key.owner:
        attributes |= {name: str(text) for name, text in key.owner.attributes}
    return Resource(attributes)


def series(key: ResourceKey, start_ns: int | None = None, **attributes: str) -> Series:
    return Series({"hw.id": key.device, **attributes}, key, start_ns)


def collect(reader: InMemoryMetricReader) -> MetricsData:
    data = reader.get_metrics_data()
    assert data is not None
    return data


def found(data: MetricsData) -> dict[str, Metric]:
    return {
        metric.name: metric
        for resource_metrics in data.resource_metrics
        for scope_metrics in resource_metrics.scope_metrics
        for metric in scope_metrics.metrics
    }


def read(metric: Metric) -> list[Any]:
    points: Sequence[Any] = metric.data.data_points
    return [point.value for point in points]


def values(data: MetricsData, name: str) -> list[Any]:
    return [
        value
        for resource_metrics in data.resource_metrics
        for scope_metrics in resource_metrics.scope_metrics
        for metric in scope_metrics.metrics
        if metric.name == name
        for value in read(metric)
    ]


def observing(*observed: Any) -> Callable[[CallbackOptions], Iterable[Any]]:
    return lambda _options: observed


# What is collected


def instrument_all(provider: Any) -> None:
    """Register the same instruments with the same callbacks, whichever provider it is."""
    meter = provider.get_meter("a", "1", "https://schema", {"k": "v"})
    attributes: dict[str, Any] = {"s": "x", "i": 1, "f": 0.5, "b": True, "l": ("p", "q")}
    observed = [Observation(3, attributes), Observation(0.25, {"s": "y"}), Observation(7)]
    for create, name in (
        (meter.create_observable_gauge, "Gauge"),
        (meter.create_observable_counter, "counter"),
        (meter.create_observable_up_down_counter, "updown"),
    ):
        create(name, [observing(*observed)], unit="By", description=f"About {name}")
    counter = provider.get_meter("b").create_counter("sync.counter")
    counter.add(2, {"x": "1"})
    counter.add(3, {"x": "1"})
    provider.get_meter("b").create_up_down_counter("sync.updown").add(-4)
    provider.get_meter("b").create_gauge("sync.gauge").set(9.5)
    histogram = provider.get_meter("a", "1", "https://schema", {"k": "v"}).create_histogram(
        "sync.histogram", explicit_bucket_boundaries_advisory=[1, 10]
    )
    for amount in (0.5, 5, 50):
        histogram.record(amount, {"x": "1"})


def comparable(data: MetricsData) -> Any:
    """Give all that two collections of different moments must share."""

    def point(one: Any) -> Any:
        members = {name: getattr(one, name) for name in one.__dataclass_fields__}
        for varying in ("time_unix_nano", "start_time_unix_nano", "exemplars"):
            del members[varying]
        return {**members, "attributes": dict(one.attributes or {})}

    return [
        (
            dict(resource_metrics.resource.attributes),
            {
                (scope_metrics.scope, scope_metrics.schema_url): [
                    (
                        metric.name,
                        metric.unit,
                        metric.description,
                        type(metric.data),
                        getattr(metric.data, "is_monotonic", None),
                        getattr(metric.data, "aggregation_temporality", None),
                        sorted(map(point, metric.data.data_points), key=repr),
                    )
                    for metric in sorted(scope_metrics.metrics, key=lambda metric: metric.name)
                ]
                for scope_metrics in resource_metrics.scope_metrics
            },
        )
        for resource_metrics in data.resource_metrics
    ]
