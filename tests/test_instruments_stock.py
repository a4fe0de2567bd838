"""The catalog on a stock OpenTelemetry SDK, as an application that embeds it would have it."""

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    Gauge,
    HistogramDataPoint,
    InMemoryMetricReader,
    NumberDataPoint,
    Sum,
)

from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.forms import Supplied
from otel_gpu.catalog.reading import call
from otel_gpu.instruments import Instruments
from otel_gpu.ledger import Batch, Page, fold
from otel_gpu.model import (
    Answer,
    Code,
    Kind,
    Reading,
    Snapshot,
)
from otel_gpu.sampler import Clock, Plan, Sampler
from otel_gpu.sweep import applicable
from tests.catalog.planting import answers, planted, seeds
from tests.machine import Machine, Time, driven, gpu
from tests.observing import GPU, OTHER, POD, POWER, SLICE, SUPPLIES, UP, snapshot


@pytest.fixture
def reader() -> InMemoryMetricReader:
    return InMemoryMetricReader()


@pytest.fixture
def provider(reader: InMemoryMetricReader) -> Iterator[MeterProvider]:
    stock = MeterProvider([reader], shutdown_on_exit=False)
    yield stock
    stock.shutdown()


def exported(reader: InMemoryMetricReader) -> dict[str, Any]:
    """Collect, and give each metric's data by name."""
    data = reader.get_metrics_data()
    return {
        metric.name: metric
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def streams(metric: Any) -> dict[tuple[tuple[str, Any], ...], float]:
    return {
        tuple(sorted(dict(point.attributes or {}).items())): point.value
        for point in metric.data.data_points
        if isinstance(point, NumberDataPoint)
    }


class TestStockProvider:
    """A library's user has a provider of the SDK; it must see the same values."""

    def everything(self) -> Snapshot:
        readings: list[Reading] = []
        for device in (GPU, SLICE):
            metrics = applicable(CATALOG, device)
            heard = answers(planted(seeds(CATALOG, device)))
            page = fold(Page(), Batch(device, 1, 0.0, heard), metrics, 15.0)
            readings += page.readings.values()
        return snapshot(*readings, owners={GPU.uuid: (POD,), SLICE.uuid: (POD, OTHER)})

    def test_every_reading_is_exported_with_its_value_and_its_attributes(
        self, provider: MeterProvider, reader: InMemoryMetricReader
    ) -> None:
        published = self.everything()
        instruments = Instruments(
            CATALOG, lambda: published, every={}, supplies=SUPPLIES, clock=float
        )
        instruments.register(provider.get_meter("otel-gpu"))
        found = exported(reader)
        expected: dict[str, dict[tuple[tuple[str, Any], ...], float]] = {}
        for one in published.readings:
            device = published.devices[one.device]
            for point in one.points:
                labels: dict[str, Any] = {"hw.id": device.uuid, "hw.name": device.name}
                if device is SLICE:
                    labels |= {
                        "hw.parent": GPU.uuid,
                        "nvidia.gpu.mig.profile": "1g.18gb",
                        "nvidia.gpu.mig.gpu_instance": 1,
                        "nvidia.gpu.mig.compute_instance": 0,
                    }
                if one.metric.owner:
                    shared = {"nvidia.gpu.shared": True}
                    labels |= shared if device is SLICE else dict(POD.attributes)
                labels |= dict(one.metric.constant) | dict(point.attributes)
                key = tuple(sorted(labels.items()))
                expected.setdefault(one.metric.name, {})[key] = point.value
        assert len(expected) > 20
        for name, points in expected.items():
            assert streams(found[name]) == points, name

    def test_each_metric_is_the_instrument_that_its_record_says(
        self, provider: MeterProvider, reader: InMemoryMetricReader
    ) -> None:
        published = self.everything()
        instruments = Instruments(
            CATALOG, lambda: published, every={}, supplies=SUPPLIES, clock=float
        )
        instruments.register(provider.get_meter("otel-gpu"))
        kinds = {
            Kind.GAUGE: (Gauge, None),
            Kind.COUNTER: (Sum, True),
            Kind.UPDOWNCOUNTER: (Sum, False),
        }
        found = exported(reader)
        for metric in CATALOG:
            if metric.name in found:
                data = found[metric.name]
                assert (data.unit, data.description) == (metric.unit, metric.brief)
                monotonic = data.data.is_monotonic if isinstance(data.data, Sum) else None
                assert (type(data.data), monotonic) == kinds[metric.kind], metric.name

    def test_histograms_are_handed_to_the_agent_with_their_own_buckets(
        self, provider: MeterProvider, reader: InMemoryMetricReader
    ) -> None:
        instruments = Instruments(CATALOG, snapshot, every={}, clock=float)
        histograms = instruments.register(provider.get_meter("otel-gpu"))
        assert set(histograms) == {m.name for m in CATALOG if m.kind is Kind.HISTOGRAM}
        histograms["otel_gpu.sweep.duration"].record(0.004)
        (point,) = exported(reader)["otel_gpu.sweep.duration"].data.data_points
        (record,) = (m for m in CATALOG if m.name == "otel_gpu.sweep.duration")
        assert isinstance(point, HistogramDataPoint)
        assert tuple(point.explicit_bounds) == record.buckets
        assert (point.count, point.sum) == (1, 0.004)

    def test_series_of_a_gpu_that_is_lost_end_at_the_next_collection(
        self, provider: MeterProvider, reader: InMemoryMetricReader
    ) -> None:
        time, machine = Time(), Machine(gpu(0), gpu(1))
        for device in machine.devices:
            machine.say(device.uuid, call("power").query, 5.0)
        clock = Clock(time.monotonic, time.unix_ns)
        plan = Plan(metrics=(POWER, UP), every={"hw.power": 1.0})
        sampler = Sampler(driven(machine, time), plan, clock=clock)
        instruments = Instruments(
            plan.metrics,
            lambda: sampler.snapshot,
            every=plan.every,
            supplies=SUPPLIES,
            clock=time.monotonic,
        )
        instruments.register(provider.get_meter("otel-gpu"))

        def on(name: str) -> dict[object, float]:
            return {
                dict(key)["hw.id"]: value for key, value in streams(exported(reader)[name]).items()
            }

        sampler.step()
        assert on("hw.power") == {"GPU-0": 5.0, "GPU-1": 5.0}
        assert on("otel_gpu.device.up") == {"GPU-0": 1, "GPU-1": 1}
        machine.refuses["GPU-0"] = Code.GPU_IS_LOST
        time.pass_by(1.0)
        sampler.step()
        assert on("hw.power") == {"GPU-1": 5.0}
        assert on("otel_gpu.device.up") == {"GPU-0": 0, "GPU-1": 1}

    def test_two_readers_ask_the_driver_once(self) -> None:
        readers = [InMemoryMetricReader(), InMemoryMetricReader()]
        stock = MeterProvider(readers, shutdown_on_exit=False)
        time, machine = Time(), Machine(gpu())
        machine.answers["GPU-0", call("power").query] = Answer(Code.SUCCESS, 5.0)
        plan = Plan(metrics=(POWER,), every={"hw.power": 1.0})
        sampler = Sampler(driven(machine, time), plan, clock=Clock(time.monotonic, time.unix_ns))
        instruments = Instruments(
            plan.metrics, lambda: sampler.snapshot, every=plan.every, clock=time.monotonic
        )
        instruments.register(stock.get_meter("otel-gpu"))
        sampler.step()
        for reader in readers:
            assert list(streams(exported(reader)["hw.power"]).values()) == [5.0]
        assert len(machine.asked) == 1
        stock.shutdown()


def test_every_metric_that_is_read_carries_its_owner_only_if_the_record_says_so() -> None:
    published = TestStockProvider().everything()
    instruments = Instruments(CATALOG, lambda: published, every={}, clock=float)
    for metric in CATALOG:
        if not isinstance(metric.read, Supplied):
            on_gpu = [
                dict(one.attributes or {})
                for one in instruments.observe(metric)
                if (one.attributes or {})["hw.id"] == GPU.uuid
            ]
            assert all(("k8s.pod.name" in labels) == metric.owner for labels in on_gpu), metric.name
