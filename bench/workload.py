"""What is collected, encoded and written in `bench.stock`: by our provider, and by the stock SDK.

2,000 series with 10 attributes each, of 25 metrics of 8 GPUs; the same instruments on both
providers, so that the same observations are made for both.
"""

from __future__ import annotations

import random
import time

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import MeterProvider
from opentelemetry.sdk.metrics import MeterProvider as StockProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from prometheus_client import CollectorRegistry

from otel_gpu.catalog.reading import call
from otel_gpu.instruments import Instruments
from otel_gpu.model import Device, Kind, Metric, Point, Reading, Snapshot
from otel_gpu.provider import MeterProvider as OurProvider

KINDS = (Kind.GAUGE, Kind.COUNTER, Kind.UPDOWNCOUNTER)
METRICS = [
    Metric(
        name=f"nvidia.gpu.reading{number}",
        kind=KINDS[number % 3],
        unit="W",
        brief="A reading that a benchmark makes up.",
        read=call("nvmlDeviceGetPowerUsage"),
        constant=(("hw.type", "gpu"), ("hw.vendor", "nvidia")),
    )
    for number in range(25)
]
GPUS = {
    f"GPU-{number}": Device(uuid=f"GPU-{number}", index=number, minor=number) for number in range(8)
}
POINTS = [
    tuple((f"nvidia.gpu.attribute{key}", f"value {key} of {point}") for key in range(6))
    for point in range(10)
]
SERIES = len(METRICS) * len(GPUS) * len(POINTS)


class Workload:
    """The same instruments on our provider and on the stock one."""

    def __init__(self) -> None:
        self.sweep()
        self.ours = InMemoryMetricReader()
        self.stock = InMemoryMetricReader()
        self.registry = CollectorRegistry()
        self.stock_prometheus = _prometheus(self.registry)
        self._providers: list[MeterProvider] = [
            OurProvider([self.ours], lambda key: Resource({"hw.id": key.device})),
            StockProvider([self.stock], Resource({}), shutdown_on_exit=False),
            StockProvider([self.stock_prometheus], Resource({}), shutdown_on_exit=False),
        ]
        for provider in self._providers:
            instruments = Instruments(
                METRICS,
                lambda: self.snapshot,
                every=dict.fromkeys((metric.name for metric in METRICS), 1.0),
            )
            instruments.register(provider.get_meter("bench"))

    def sweep(self) -> None:
        """Publish a snapshot with other values."""
        now_ns, now_s = time.time_ns(), time.monotonic()
        readings = tuple(
            Reading(
                metric,
                uuid,
                tuple(Point(_watts(), attributes) for attributes in POINTS),
                now_ns,
                now_s,
            )
            for metric in METRICS
            for uuid in GPUS
        )
        up = dict.fromkeys(GPUS, True)
        self.snapshot = Snapshot(
            readings=readings, devices=GPUS, up=up, time_ns=now_ns, read_s=now_s
        )


def _watts() -> float:
    """Make a value up, with as many digits as one that was read in milliwatts."""
    return random.randrange(700_000) / 1_000  # noqa: S311 - no secret


def _prometheus(registry: CollectorRegistry) -> PrometheusMetricReader:
    try:
        return PrometheusMetricReader(scope_info_enabled=False, registry=registry)
    except TypeError:  # an older one registers itself globally
        from prometheus_client import REGISTRY

        reader = PrometheusMetricReader()
        REGISTRY.unregister(reader._collector)  # noqa: SLF001 - it offers no way to say where
        registry.register(reader._collector)  # noqa: SLF001 - likewise
        return reader
