"""A sampler on a driver that nobody can rely on, and every way out behind it, from one seed."""

from __future__ import annotations

import json
import random
from collections import Counter

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricsData

from otel_gpu.catalog import CATALOG
from otel_gpu.document import document
from otel_gpu.instruments import Instruments
from otel_gpu.model import Snapshot
from otel_gpu.pipeline.encoding import Encoder
from otel_gpu.pipeline.exposition import Exposition, Format
from otel_gpu.provider import MeterProvider
from otel_gpu.resources import Resources
from otel_gpu.sampler import Clock, Plan, Sampler, tiers
from otel_gpu.sweep import intervals
from tests.catalog.supplies import SUPPLIES
from tests.fuzz.answers import Fickle
from tests.fuzz.judging import Judge
from tests.machine import Time

PAUSES_S = (1.0, 1.0, 1.0, 1.0, 0.3, 5.0, 13.0, 61.0, 4000.0)
EPOCH_S = 1_500_000_000.0  # long past: the provider's clock is the machine's
OUT = 4  # of so many sweeps, one is collected: between them the driver says what it likes


class Bench:
    """Sweeps, and judges each; `complaints` says what is off, with the sweep it was seen in."""

    def __init__(self, seed: object, *, calm: bool = False) -> None:
        self._chance = random.Random(f"bench {seed}")  # noqa: S311 - the same each time
        self.time = Time(epoch_s=EPOCH_S)
        self.driver = Fickle(seed, self.time, calm=calm)
        every = intervals(CATALOG, tiers(1.0, 5.0, 60.0), lambda _: None)
        plan = Plan(metrics=CATALOG, every=every)
        clock = Clock(self.time.monotonic, self.time.unix_ns)
        self.sampler = Sampler(self.driver, plan, clock=clock)
        self.instruments = Instruments(
            CATALOG,
            lambda: self.sampler.snapshot,
            every=every,
            supplies=SUPPLIES,
            clock=self.time.monotonic,
        )
        self.reader = InMemoryMetricReader()
        node = {"host.name": "box"}
        resources = Resources(node, lambda: self.sampler.snapshot)
        provider = MeterProvider([self.reader], resources, shutdown_on_exit=False)
        self.instruments.register(provider.get_meter("otel-gpu"))
        self.judge = Judge(CATALOG)
        self.encoder, self.exposition = Encoder(), Exposition(created=True)
        self._pauses_s = PAUSES_S[:1] if calm else PAUSES_S
        self.sweeps = 0
        self.complaints: list[str] = []
        self.read: Counter[str] = Counter()  # by metric
        self.lacked: Counter[str] = Counter()  # by reason

    def run(self, answers: int) -> None:
        """Sweep until so many answers were given."""
        while self.driver.given < answers:
            self.turn()

    def turn(self) -> None:
        """Make one sweep, and judge all that comes of it."""
        self.sweeps += 1
        generation = self.driver.generation
        self.driver.answered.clear()
        snapshot = self.sampler.step()
        anew = self.driver.generation != generation
        found = self.judge.complaints(snapshot, self.driver.answered, anew=anew)
        if self.sweeps % OUT == 0:
            found += self._out(snapshot)
        self.read.update(reading.metric.name for reading in snapshot.readings)
        self.lacked.update(gap.missing.reason for gap in snapshot.gaps)
        self.complaints += [f"sweep {self.sweeps}: {line}" for line in found]
        self.time.pass_by(self._chance.choice(self._pauses_s))

    def _out(self, snapshot: Snapshot) -> list[str]:
        """Send a snapshot every way out."""
        json.dumps(document(snapshot))
        data = self.reader.get_metrics_data()
        assert data is not None
        return [*self._observed(), *self._pushed(data), *self._scraped(data)]

    def _observed(self) -> list[str]:
        groups = [
            (metric.name, group)
            for metric in CATALOG
            for group in self.instruments.observe(metric).groups
        ]
        return [
            f"{name}: {group.values} do not fit OTLP" for name, group in groups if not group.plain
        ]

    def _pushed(self, data: MetricsData) -> list[str]:
        """Encode it as OTLP, and count what arrives."""
        sent = sum(
            len(metric.gauge.data_points) + len(metric.sum.data_points)
            for request in self.encoder.encode(data)
            for resource in ExportMetricsServiceRequest.FromString(request.body).resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        )
        meant = sum(
            len(metric.data.data_points)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        )
        return [] if sent == meant else [f"{meant} points, of which {sent} can be pushed"]

    def _scraped(self, data: MetricsData) -> list[str]:
        """Write it for Prometheus; no series stands there twice."""
        page = self.exposition.render(data, Format.TEXT).decode()
        self.exposition.render(data, Format.OPENMETRICS)
        heads = Counter(line.rpartition(" ")[0] for line in page.splitlines() if line[:1] != "#")
        return [f"{head} is there {count} times" for head, count in heads.items() if count > 1]
