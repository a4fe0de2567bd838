"""Two GPUs, one of them held by a pod, and the agent itself, as callbacks on a provider."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricReader, MetricsData
from opentelemetry.sdk.resources import Resource

from otel_gpu.model import NODE, Owner, ResourceKey, Series
from otel_gpu.provider import MeterProvider

POD = Owner((("k8s.namespace.name", "ml"), ("k8s.pod.name", "train-0")))
START_NS = 1_700_000_000_000_000_000
POINTS = 12
"""How many points a collection of the box has."""


@dataclass(frozen=True)
class Reading:
    """What a callback yields for a series that is kept."""

    value: int | float
    series: Series


def resource(key: ResourceKey) -> Resource:
    """Describe the node "box", a GPU on it, or a GPU and its owner."""
    attributes = {"service.name": "otel-gpu", "host.name": "box"}
    attributes |= {"hw.id": key.device} if key.device else {}
    attributes |= {name: str(text) for name, text in key.owner.attributes} if key.owner else {}
    return Resource(attributes)


def reading(
    value: float, key: ResourceKey, start_ns: int | None = None, **attributes: Any
) -> Reading:
    """Make a reading of a GPU; `_` in an attribute's name stands for a dot."""
    named = {name.replace("_", "."): text for name, text in attributes.items()}
    owned = dict(key.owner.attributes) if key.owner else {}
    return Reading(value, Series({"hw.id": key.device, **named, **owned}, key, start_ns))


def observing(*observed: Any) -> list[Callable[[CallbackOptions], Iterable[Any]]]:
    """Make callbacks that always observe the same."""
    return [lambda _options: observed]


class Box:
    """A provider with instruments of every kind. `power` and `energy` are read."""

    def __init__(self, readers: Sequence[MetricReader] = ()) -> None:
        self.provider = MeterProvider(readers, resource, shutdown_on_exit=False)
        held, free = ResourceKey("GPU-0", POD), ResourceKey("GPU-1")
        gpu = ResourceKey("GPU-0")
        self.power: list[Any] = [
            reading(412.5, held, hw_name="nvidia0"),
            reading(71.0, free, hw_name="nvidia1"),
        ]
        self.energy: list[Any] = [reading(123456.789, gpu, START_NS), reading(9, free)]
        meter = self.provider.get_meter("otel-gpu", "1.2.3")
        meter.create_observable_gauge(
            "hw.power", [lambda _options: list(self.power)], unit="W", description="Power drawn."
        )
        meter.create_observable_gauge(
            "hw.gpu.utilization",
            observing(
                reading(0.87, held, hw_name="nvidia0", hw_gpu_task="general"),
                reading(0.1, held, hw_name="nvidia0", hw_gpu_task="encoder"),
                reading(0.0, free, hw_name="nvidia1", hw_gpu_task="general"),
            ),
            unit="1",
        )
        meter.create_observable_counter(
            "hw.energy",
            [lambda _options: list(self.energy)],
            unit="J",
            description='Energy "used"\nby a \\ board.',
        )
        meter.create_observable_up_down_counter(
            "hw.gpu.memory.usage",
            observing(reading(40 << 30, held, hw_name="nvidia0")),
            unit="By",
        )
        meter.create_observable_up_down_counter(
            "hw.status",
            observing(
                reading(1, gpu, hw_name="nvidia0", hw_state="ok"),
                reading(0, gpu, hw_name="nvidia0", hw_state="failed"),
            ),
            unit="1",
        )
        meter.create_observable_up_down_counter("otel_gpu.nvml.up", observing(Observation(1)), "1")
        self.sweep = meter.create_histogram(
            "otel_gpu.sweep.duration",
            unit="s",
            explicit_bucket_boundaries_advisory=[0.01, 0.1, 1],
        )
        for seconds in (1 / 256, 1 / 16, 0.5, 4.0):  # whose sum is exact
            self.sweep.record(seconds, {"phase": "fast"})


def collected() -> MetricsData:
    """Give one collection of a box."""
    reader = InMemoryMetricReader()
    box = Box([reader])
    box.sweep.record(1 / 64, {"phase": "fast"})
    data = reader.get_metrics_data()
    assert data is not None
    box.provider.shutdown()
    return data


NODE_RESOURCE = resource(NODE)
