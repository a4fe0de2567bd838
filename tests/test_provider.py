"""The provider collects what the stock SDK collects, and keeps nothing of it."""

from __future__ import annotations

import gc
import json
import logging
import math
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import CallbackOptions, NoOpMeter, Observation
from opentelemetry.sdk.metrics import Counter, Histogram
from opentelemetry.sdk.metrics import MeterProvider as StockProvider
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    ConsoleMetricExporter,
    InMemoryMetricReader,
    Metric,
    MetricReader,
    MetricsData,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation
from opentelemetry.sdk.resources import Resource
from prometheus_client import REGISTRY, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from otel_gpu.model import NODE, Owner, ResourceKey, Series
from otel_gpu.provider import MeterProvider, SeriesPoint
from otel_gpu.provider.bounded import run_all
from tests.receiver import GrpcReceiver, HttpReceiver, Receiver, points, value
from tests.receiver import metrics as sent

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


@pytest.fixture
def reader() -> InMemoryMetricReader:
    return InMemoryMetricReader()


@pytest.fixture
def provider(reader: InMemoryMetricReader) -> Iterator[MeterProvider]:
    provider = MeterProvider([reader], resources, shutdown_on_exit=False)
    yield provider
    provider.shutdown()


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


def test_the_same_callbacks_give_the_points_that_the_stock_sdk_gives(
    provider: MeterProvider, reader: InMemoryMetricReader
) -> None:
    stock_reader = InMemoryMetricReader()
    stock = StockProvider([stock_reader], resources(NODE), shutdown_on_exit=False)
    instrument_all(provider)
    instrument_all(stock)

    for _ in range(2):
        assert comparable(collect(reader)) == comparable(collect(stock_reader))


def test_a_collection_is_of_one_moment_and_starts_where_the_series_does(
    provider: MeterProvider, reader: InMemoryMetricReader
) -> None:
    meter = provider.get_meter("m")
    started = Reading(5, series(GPU0, start_ns=1_000))
    meter.create_observable_counter("c", [observing(started, Observation(1))])
    meter.create_observable_gauge("g", [observing(started)])

    before_ns = time.time_ns()
    data = collect(reader)

    metrics = [
        metric
        for resource_metrics in data.resource_metrics
        for metric in resource_metrics.scope_metrics[0].metrics
    ]
    times = {point.time_unix_nano for metric in metrics for point in metric.data.data_points}
    (moment,) = times
    assert before_ns <= moment <= time.time_ns()
    starts = [
        (metric.name, point.start_time_unix_nano)
        for metric in metrics
        for point in metric.data.data_points
    ]
    assert starts == [("c", 1_000), ("g", 0), ("c", 0)]


def test_each_resource_has_its_own_branch_and_equal_ones_are_merged(
    reader: InMemoryMetricReader,
) -> None:
    owner = Owner((("k8s.pod.name", "train-0"),))
    held = series(ResourceKey("GPU-0", owner))
    again = series(ResourceKey("GPU-0", Owner(owner.attributes, (("k8s.pod.uid", "u"),))))
    provider = MeterProvider([reader], resources, shutdown_on_exit=False)
    for meter in (provider.get_meter("m"), provider.get_meter("n")):
        meter.create_observable_gauge(
            "g",
            [
                observing(
                    Reading(1.0, series(GPU0)),
                    Reading(2.0, held),
                    Reading(3.0, series(GPU1)),
                    Reading(4.0, again),
                    Reading(5.0, series(GPU0, pipe="fp64")),
                    Observation(6.0),
                )
            ],
        )

    tree = {
        (
            resource_metrics.resource.attributes.get("hw.id"),
            resource_metrics.resource.attributes.get("k8s.pod.name"),
        ): {
            scope_metrics.scope.name: [read(metric) for metric in scope_metrics.metrics]
            for scope_metrics in resource_metrics.scope_metrics
        }
        for resource_metrics in collect(reader).resource_metrics
    }

    def both(*numbers: float) -> Mapping[str, list[list[float]]]:
        return {"m": [list(numbers)], "n": [list(numbers)]}

    assert tree == {
        ("GPU-0", None): both(1.0, 5.0),
        ("GPU-0", "train-0"): both(2.0, 4.0),  # two keys, one Resource: one metric
        ("GPU-1", None): both(3.0),
        (None, None): both(6.0),
    }


def test_the_official_encoder_loses_no_resource(
    provider: MeterProvider, reader: InMemoryMetricReader
) -> None:
    readings = [Reading(float(n), series(ResourceKey(f"GPU-{n}"))) for n in range(8)]
    provider.get_meter("m").create_observable_counter("c", [observing(*readings)])

    encoded = encode_metrics(collect(reader))

    sent = [
        (
            resource_metrics.resource.attributes[1].value.string_value,
            resource_metrics.scope_metrics[0].metrics[0].sum.data_points[0].as_double,
            resource_metrics.scope_metrics[0].metrics[0].sum.data_points[0].start_time_unix_nano,
        )
        for resource_metrics in encoded.resource_metrics
    ]
    assert sent == [(f"GPU-{n}", float(n), 0) for n in range(8)]


def test_points_know_their_series_and_pass_for_the_sdks_own(
    provider: MeterProvider, reader: InMemoryMetricReader
) -> None:
    mine = series(GPU0, start_ns=3)
    provider.get_meter("m").create_observable_counter("c", [observing(Reading(7, mine))])

    data = collect(reader)
    points: Sequence[Any] = found(data)["c"].data.data_points

    point = points[0]
    assert isinstance(point, SeriesPoint)
    assert point.series is mine
    assert [one.value for one in points[:1]] == [7]
    assert list(points) == [point] == [points[-1]]
    assert repr(points) == repr([point])
    (written,) = json.loads(found(data)["c"].to_json())["data"]["data_points"]
    assert written == {
        "attributes": {"hw.id": "GPU-0"},
        "start_time_unix_nano": 3,
        "time_unix_nano": point.time_unix_nano,
        "value": 7,
        "exemplars": [],
    }


def test_a_series_that_is_not_observed_any_more_is_gone(
    provider: MeterProvider, reader: InMemoryMetricReader
) -> None:
    alive: list[Any] = [Reading(1.0, series(GPU0)), Reading(2.0, series(GPU1))]
    provider.get_meter("m").create_observable_gauge("g", [lambda _options: list(alive)])
    assert values(collect(reader), "g") == [1.0, 2.0]

    alive.pop()
    (left,) = collect(reader).resource_metrics
    assert left.resource.attributes["hw.id"] == "GPU-0"
    alive.clear()
    assert reader.get_metrics_data() is None


def test_more_series_than_the_stock_limit_are_all_there(
    provider: MeterProvider, reader: InMemoryMetricReader
) -> None:
    for generation in range(3):
        crowd = [Observation(n, {"pid": generation * 10_000 + n}) for n in range(2_500)]
        name = f"g{generation}"
        provider.get_meter("m").create_observable_gauge(name, [observing(*crowd)])
        assert values(collect(reader), name) == list(range(2_500))


# Resources


def test_a_resource_is_made_once_while_it_lives_and_leaves_nothing_when_it_goes(
    reader: InMemoryMetricReader,
) -> None:
    made: list[tuple[ResourceKey, weakref.ref[Resource]]] = []

    def make(key: ResourceKey) -> Resource:
        resource = resources(key)
        made.append((key, weakref.ref(resource)))
        return resource

    provider = MeterProvider([reader], make, shutdown_on_exit=False)
    alive: list[Any] = [Reading(1.0, series(GPU0)), Reading(2.0, series(GPU1))]
    provider.get_meter("m").create_observable_gauge("g", [lambda _options: list(alive)])
    for _ in range(3):
        collect(reader)
    assert [key for key, _ in made] == [GPU0, GPU1]

    alive.pop()
    collect(reader)
    gc.collect()
    assert [remembered() is not None for _, remembered in made] == [True, False]


def test_resources_are_made_anew_when_they_were_forgotten(reader: InMemoryMetricReader) -> None:
    facts = {"driver": "1"}
    provider = MeterProvider([reader], lambda _key: Resource(facts), shutdown_on_exit=False)
    provider.get_meter("m").create_observable_gauge("g", [observing(Observation(1))])
    collect(reader)
    facts["driver"] = "2"

    provider.forget_resources()

    assert collect(reader).resource_metrics[0].resource.attributes["driver"] == "2"


def test_a_reader_of_one_resource_gets_everything_under_the_node(
    reader: InMemoryMetricReader,
) -> None:
    plain = InMemoryMetricReader()
    provider = MeterProvider([plain, reader], resources, one_resource=[reader])
    readings = [Reading(1.0, series(GPU0)), Reading(2.0, series(GPU1)), Observation(3.0)]
    provider.get_meter("m").create_observable_gauge("g", [observing(*readings)])

    assert len(collect(plain).resource_metrics) == 3
    (only,) = collect(reader).resource_metrics
    assert only.resource == resources(NODE)
    assert values(collect(reader), "g") == [1.0, 2.0, 3.0]
    provider.shutdown()


# What goes wrong


def test_a_callback_that_raises_is_logged_once_and_costs_only_its_own_points(
    provider: MeterProvider, reader: InMemoryMetricReader, caplog: pytest.LogCaptureFixture
) -> None:
    broken = True

    def sometimes(_options: CallbackOptions) -> Iterable[Observation]:
        yield Observation(1)
        if broken:
            raise RuntimeError("the sensor fell off")
        yield Observation(2)

    meter = provider.get_meter("m")
    meter.create_observable_gauge("g", [sometimes, observing(Observation(3))])
    meter.create_observable_gauge("h", [observing(Observation(4))])
    caplog.set_level(logging.INFO, "otel_gpu")

    for _ in range(3):
        data = collect(reader)
        assert values(data, "g") == [1, 3]
        assert values(data, "h") == [4]
    broken = False
    assert values(collect(reader), "g") == [1, 2, 3]
    collect(reader)

    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "a callback of g fails: RuntimeError('the sensor fell off')",
        "the callbacks of g work again",
    ]


class Level(IntEnum):
    HIGH = 4


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, True, None, "7", 2**63, -(2**63) - 1, 2**64 - 1, Decimal(1)],
)
def test_what_otlp_cannot_carry_is_dropped_and_told_once(
    provider: MeterProvider,
    reader: InMemoryMetricReader,
    caplog: pytest.LogCaptureFixture,
    value: Any,
) -> None:
    observed: list[Any] = [Reading(value, series(GPU1)), Reading(1.5, series(GPU0))]
    provider.get_meter("m").create_observable_gauge("g", [lambda _options: list(observed)])

    for _ in range(2):
        data = collect(reader)
        assert values(data, "g") == [1.5]
        encode_metrics(data)

    (record,) = caplog.records
    assert record.getMessage() == f"g: dropped {value!r}: not a number that OTLP can carry"


@pytest.mark.parametrize(
    ("value", "plain"),
    [(Level.HIGH, 4), (2**63 - 1, 2**63 - 1), (-(2**63), -(2**63)), (Fraction(1, 4), 0.25)],
)
def test_every_other_kind_of_number_becomes_a_plain_one(
    provider: MeterProvider, reader: InMemoryMetricReader, value: Any, plain: float
) -> None:
    provider.get_meter("m").create_observable_gauge("g", [observing(Observation(value))])

    (got,) = values(collect(reader), "g")

    assert (got, type(got)) == (plain, type(plain))


@given(st.lists(st.floats() | st.integers(-(2**70), 2**70), max_size=20))
def test_any_numbers_can_be_encoded_after_the_collection(numbers: list[Any]) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], resources, shutdown_on_exit=False)
    observed = [Observation(number, {"n": str(n)}) for n, number in enumerate(numbers)]
    provider.get_meter("m").create_observable_counter("c", [observing(*observed)])

    data = reader.get_metrics_data()

    kept = values(data, "c") if data else []
    assert kept == [
        number
        for number in numbers
        if abs(number) < math.inf and (isinstance(number, float) or -(2**63) <= number < 2**63)
    ]
    if data:
        encode_metrics(data).SerializeToString()


# Instruments


def test_asking_twice_for_an_observable_adds_the_callbacks(
    provider: MeterProvider, reader: InMemoryMetricReader, caplog: pytest.LogCaptureFixture
) -> None:
    meter = provider.get_meter("m")
    first = meter.create_observable_gauge("g", [observing(Observation(1))], unit="W")
    second = provider.get_meter("m").create_observable_gauge(
        "G", [observing(Observation(2))], unit="W", description="later"
    )

    assert first is second
    assert values(collect(reader), "g") == [1, 2]
    assert not caplog.records


def test_the_same_name_as_something_else_is_warned_of_once(
    provider: MeterProvider, reader: InMemoryMetricReader, caplog: pytest.LogCaptureFixture
) -> None:
    meter = provider.get_meter("m")
    meter.create_observable_gauge("x", [observing(Observation(1))], unit="W")
    for _ in range(2):
        meter.create_observable_counter("x", [observing(Observation(2))], unit="W")

    (record,) = caplog.records
    assert record.getMessage() == (
        "x is created as ObservableCounter in 'W', but exists as ObservableGauge in 'W': "
        "a backend may refuse one of them"
    )
    (scope,) = collect(reader).resource_metrics[0].scope_metrics
    assert [type(metric.data).__name__ for metric in scope.metrics] == ["Gauge", "Sum"]


def test_a_name_or_unit_that_the_specification_forbids_is_refused(provider: MeterProvider) -> None:
    meter = provider.get_meter("m")
    with pytest.raises(ValueError, match=r"instrument name '1st' is not valid: a letter"):
        meter.create_observable_gauge("1st")
    with pytest.raises(ValueError, match=r"instrument unit '°C' is not valid"):
        meter.create_histogram("x", unit="°C")


def test_a_generator_is_sent_the_options_and_may_end(
    provider: MeterProvider, reader: InMemoryMetricReader
) -> None:
    timeouts: list[float] = []

    def generator() -> Any:
        options = yield ()
        for number in range(2):
            timeouts.append(options.timeout_millis)
            options = yield [Observation(number)]

    provider.get_meter("m").create_observable_gauge("g", [generator()])
    provider.get_meter("m").create_observable_gauge("other", [observing(Observation(0))])

    assert [values(collect(reader), "g") for _ in range(3)] == [[0], [1], []]
    assert timeouts == [10_000, 10_000]


# Synchronous instruments


class Delta(InMemoryMetricReader):
    def __init__(self) -> None:
        super().__init__(
            preferred_temporality={
                Counter: AggregationTemporality.DELTA,
                Histogram: AggregationTemporality.DELTA,
            },
            preferred_aggregation={Histogram: ExponentialBucketHistogramAggregation()},
        )


def test_each_reader_has_its_own_deltas_and_aggregation(reader: InMemoryMetricReader) -> None:
    delta = Delta()
    provider = MeterProvider([reader, delta], resources, shutdown_on_exit=False)
    meter = provider.get_meter("m")
    counter, histogram = meter.create_counter("c"), meter.create_histogram("h")
    meter.create_observable_counter("o", [observing(Observation(9))])

    seen = []
    for amount in (1, 2):
        counter.add(amount)
        histogram.record(amount)
        seen.append((values(collect(reader), "c"), values(collect(delta), "c")))

    assert seen == [([1], [1]), ([3], [2])]
    data = found(collect(delta))
    assert data["o"].data.aggregation_temporality is AggregationTemporality.CUMULATIVE  # type: ignore[union-attr]
    histogram.record(1)
    kinds = [type(found(collect(one))["h"].data).__name__ for one in (reader, delta)]
    assert kinds == ["Histogram", "ExponentialHistogram"]


def test_synchronous_points_stand_beside_the_observed_ones_of_their_scope(
    provider: MeterProvider, reader: InMemoryMetricReader
) -> None:
    meter = provider.get_meter("m", "1")
    meter.create_observable_gauge("g", [observing(Observation(1), Reading(2, series(GPU0)))])
    meter.create_histogram("h").record(1)

    node, gpu = collect(reader).resource_metrics

    assert [metric.name for metric in node.scope_metrics[0].metrics] == ["g", "h"]
    assert len(node.scope_metrics) == 1
    assert [metric.name for metric in gpu.scope_metrics[0].metrics] == ["g"]


def test_a_synchronous_instrument_may_be_used_while_a_callback_runs(
    provider: MeterProvider, reader: InMemoryMetricReader
) -> None:
    counter = provider.get_meter("m").create_counter("runs")

    def callback(_options: CallbackOptions) -> Iterable[Observation]:
        counter.add(1)
        return [Observation(1)]

    provider.get_meter("m").create_observable_gauge("g", [callback])

    assert [values(collect(reader), "runs") for _ in range(2)] == [[1], [2]]


# Readers


def test_a_reader_that_comes_later_collects_is_flushed_and_shut_down(
    provider: MeterProvider, reader: InMemoryMetricReader
) -> None:
    counter = provider.get_meter("m").create_counter("c")
    counter.add(1)
    out = StringIO()
    late = PeriodicExportingMetricReader(ConsoleMetricExporter(out=out), math.inf)

    provider.add_metric_reader(late)
    counter.add(2)
    assert provider.force_flush()

    assert values(collect(reader), "c") == [3]
    (sent,) = json.loads(out.getvalue())["resource_metrics"]
    assert sent["scope_metrics"][0]["metrics"][0]["data"]["data_points"][0]["value"] == 2
    provider.remove_metric_reader(late)
    assert late._shutdown
    with pytest.raises(ValueError, match="is not a reader of this provider"):
        provider.remove_metric_reader(late)
    counter.add(4)
    assert values(collect(reader), "c") == [7]


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_official_periodic_reader_and_exporters_work_unchanged(protocol: str) -> None:
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as Grpc
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as Http

    receiver = Receiver()
    server = HttpReceiver(receiver) if protocol == "http" else GrpcReceiver(receiver)
    exporter: Http | Grpc = (
        Http(f"http://127.0.0.1:{receiver.http_port}/v1/metrics")
        if protocol == "http"
        else Grpc(f"http://127.0.0.1:{receiver.grpc_port}")
    )
    periodic = PeriodicExportingMetricReader(exporter, export_interval_millis=100)
    provider = MeterProvider([periodic], resources, shutdown_on_exit=False)
    readings = [Reading(1.5, series(GPU0)), Reading(2, series(GPU1))]
    provider.get_meter("m").create_observable_gauge("g", [observing(*readings)])

    *_, request = receiver.wait(2)
    provider.shutdown()
    server.close()

    assert {
        resource["hw.id"]: [value(point) for point in points(metric)]
        for resource, metric in sent(request)
    } == {"GPU-0": [1.5], "GPU-1": [2]}


def test_a_process_that_ends_flushes_its_readers() -> None:
    script = """
from opentelemetry.metrics import Observation
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from otel_gpu.provider import MeterProvider

provider = MeterProvider([PeriodicExportingMetricReader(ConsoleMetricExporter(), 3_600_000)])
provider.get_meter("m").create_observable_gauge("g", [lambda _: [Observation(7)]])
provider.get_meter("m").create_counter("c").add(1)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True
    )
    assert '"value": 7' in ended.stdout
    assert ended.stderr == ""


def test_a_reader_is_registered_once(provider: MeterProvider, reader: InMemoryMetricReader) -> None:
    with pytest.raises(ValueError, match="is a reader of this provider already"):
        provider.add_metric_reader(reader)


def test_the_official_prometheus_reader_gets_one_resource_and_right_labels() -> None:
    official = PrometheusMetricReader()
    provider = MeterProvider([official], resources, one_resource=[official], shutdown_on_exit=False)
    readings = [Reading(1.0, series(GPU0)), Reading(2.0, series(GPU1, pipe="fp64"))]
    provider.get_meter("m").create_observable_gauge("g", [observing(*readings)], unit="W")

    page = generate_latest(REGISTRY).decode()

    samples = [one for family in text_string_to_metric_families(page) for one in family.samples]
    found = {
        (one.labels["hw_id"], one.labels.get("pipe", "")): one.value
        for one in samples
        if one.name == "g_watts"
    }
    assert found == {("GPU-0", ""): 1.0, ("GPU-1", "fp64"): 2.0}
    assert [one.labels for one in samples if one.name == "target_info"] == [
        {"service_name": "test"}
    ]
    provider.shutdown()
    assert "g_watts" not in generate_latest(REGISTRY).decode()


def test_readers_collect_at_the_same_time(reader: InMemoryMetricReader) -> None:
    other = InMemoryMetricReader()
    provider = MeterProvider([reader, other], resources, shutdown_on_exit=False)
    together = threading.Barrier(2, timeout=10)

    def callback(_options: CallbackOptions) -> Iterable[Observation]:
        together.wait()  # breaks, and raises, unless both collections are in here at once
        return [Observation(1)]

    provider.get_meter("m").create_observable_gauge("g", [callback])
    thread = threading.Thread(target=other.collect)
    thread.start()
    reader.collect()
    thread.join()

    for one in (reader, other):
        assert one._metrics_data is not None
        assert values(one._metrics_data, "g") == [1]
    provider.shutdown()


class Stuck(MetricReader):
    """A reader whose shutdown takes as long as the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()

    def _receive_metrics(self, *_: Any, **__: Any) -> None:
        raise OSError("no route")

    def shutdown(self, *_: Any, **__: Any) -> None:
        self.released.wait()


def test_a_reader_that_hangs_holds_up_neither_the_shutdown_nor_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stuck, out = Stuck(), StringIO()
    healthy = PeriodicExportingMetricReader(ConsoleMetricExporter(out=out), math.inf)
    provider = MeterProvider([stuck, healthy], resources, shutdown_on_exit=False)

    began_s = time.monotonic()
    provider.shutdown(timeout_millis=200)

    assert 0.2 <= time.monotonic() - began_s < 1.0
    assert healthy._shutdown
    assert [record.getMessage() for record in caplog.records] == [
        "Stuck: shutdown did not end in time"
    ]
    stuck.released.set()


def test_a_flush_tells_whether_every_reader_managed_it(caplog: pytest.LogCaptureFixture) -> None:
    stuck = Stuck()
    provider = MeterProvider([stuck, InMemoryMetricReader()], resources, shutdown_on_exit=False)
    provider.get_meter("m").create_observable_gauge("g", [observing(Observation(1))])

    assert not provider.force_flush()
    assert [record.getMessage() for record in caplog.records] == [
        "Stuck: force_flush OSError('no route')"
    ]
    provider.remove_metric_reader(stuck, timeout_millis=1)
    assert provider.force_flush()
    stuck.released.set()


def test_a_provider_that_is_shut_down_gives_no_meter(
    reader: InMemoryMetricReader, caplog: pytest.LogCaptureFixture
) -> None:
    provider = MeterProvider([reader], resources, shutdown_on_exit=False)
    assert provider.get_meter("m", "1") is provider.get_meter("m", "1")
    assert provider.get_meter("m", "1") is not provider.get_meter("m", "2")
    provider.shutdown()
    provider.shutdown()

    assert isinstance(provider.get_meter("m", "1"), NoOpMeter)
    assert [record.getMessage() for record in caplog.records] == [
        "the meter provider is shut down already",
        "no meter 'm': it has no name, or the provider is shut down",
    ]


def test_tasks_run_at_once_and_each_is_told_what_became_of_it() -> None:
    together = threading.Barrier(3, timeout=10)

    def meet(_millis: float) -> bool:
        together.wait()
        return True

    def fail(_millis: float) -> bool:
        together.wait()
        return False

    def explode(_millis: float) -> None:
        together.wait()
        raise KeyError("x")

    assert run_all([meet, fail, explode], 10_000) == ["", "reported failure", "KeyError('x')"]
