"""A simulated box, a clock that the test moves by hand, and the words in which both are asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from otel_gpu.backends.simulated import SimulatedBackend
from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.reading import FIELD
from otel_gpu.model import (
    Answer,
    Device,
    Metric,
    Missing,
    Point,
    Query,
)

ENERGY = Query("nvmlDeviceGetTotalEnergyConsumption")
MEMORY = Query("nvmlDeviceGetMemoryInfo_v2")
RATES = Query("nvmlDeviceGetUtilizationRates")
INSTANT, AVERAGE = Query(FIELD, (186, 0)), Query(FIELD, (185, 0))
CAPPED = Query(FIELD, (74, 0))
USAGE = Query("nvmlDeviceGetPowerUsage")
RING = Query("nvmlDeviceGetSamples", (0, 0))
WARMTH = Query("nvmlDeviceGetTemperatureV", (0,))
COOL = Query("nvmlDeviceGetMarginTemperature")
REASONS = Query("nvmlDeviceGetCurrentClocksEventReasons")
UNIX_AT_ZERO_NS = 1_800_000_000_000_000_000


@dataclass
class FakeClock:
    """Monotonic seconds when called; sleeping moves it on."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now

    def time_ns(self) -> int:
        return UNIX_AT_ZERO_NS + round(self.now * 1e9)

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def simulated(spec: str = "", clock: FakeClock | None = None, **more: Any) -> SimulatedBackend:
    clock = clock or FakeClock()
    return SimulatedBackend.from_spec(
        spec, clock=clock, time_ns=clock.time_ns, sleep=clock.sleep, **more
    )


def opened(spec: str = "", clock: FakeClock | None = None, **more: Any) -> SimulatedBackend:
    backend = simulated(spec, clock, **more)
    backend.open()
    return backend


def one(backend: SimulatedBackend, query: Query, gpu: int = 0) -> Answer:
    """Ask one GPU one question."""
    return backend.ask(gpu_uuid(backend, gpu), [query])[0]


def value(backend: SimulatedBackend, query: Query, gpu: int = 0) -> Any:
    answer = one(backend, query, gpu)
    assert answer.ok, (query, answer)
    return answer.value


def gpu_uuid(backend: SimulatedBackend, gpu: int) -> str:
    return backend._spec.box.device(gpu).uuid


def readable(device: Device) -> list[Metric]:
    return [metric for metric in CATALOG if metric.on_instance or not device.is_instance]


def sweep(
    backend: SimulatedBackend, device: Device, catalog: Iterable[Metric] | None = None
) -> list[tuple[Metric, list[Point], list[Missing]]]:
    """Read metrics as the agent does when nothing is known of the device yet."""
    metrics = list(readable(device) if catalog is None else catalog)
    wanted = (metric.read.wanted(device, lambda _: False) for metric in metrics)
    queries = list(dict.fromkeys(query for group in wanted for query in group))
    answers = dict(zip(queries, backend.ask(device.uuid, queries), strict=True))
    return [(metric, *metric.read.read(device, answers)) for metric in metrics]
