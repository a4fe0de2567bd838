"""A collection becomes the very bytes that the official encoder makes of it."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.sdk.metrics.export import (
    InMemoryMetricReader,
    Metric,
    MetricsData,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from otel_gpu import single
from otel_gpu.config import load
from otel_gpu.model import ResourceKey, Series
from otel_gpu.pipeline.encoding import Encoder
from otel_gpu.provider import MeterProvider
from tests.pipeline.box import POINTS, Box, Reading, collected


def official(data: MetricsData) -> bytes:
    return encode_metrics(data).SerializeToString()


def encoded(data: MetricsData, encoder: Encoder | None = None) -> bytes:
    """Encode what fits into one request."""
    ((body, _),) = (encoder or Encoder()).encode(data)
    return body


def test_a_collection_of_every_kind_of_instrument_is_encoded_alike() -> None:
    data = collected()

    assert encoded(data) == official(data)


@pytest.mark.parametrize("box", ["h200x8", "a100-mig", "gb10"])
def test_whole_machines_are_encoded_alike(box: str) -> None:
    settings_ = load(None, {}, {"backend": f"simulated:{box}"}).settings
    data, _ = single.collected(settings_, single.sweep(settings_), {})

    assert encoded(data) == official(data)


# Random collections, by one encoder that keeps what it can from each to the next

NAMES = st.sampled_from(["hw.power", "hw.energy", "nvidia.gpu.a", "b", "c_d"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = (
    st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0, 0.0, -0.0, 5e-324])
)
ATTRIBUTES = st.dictionaries(
    TEXTS.filter(bool),
    TEXTS | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.booleans(),
    max_size=4,
)
SERIES = st.builds(
    Series,
    ATTRIBUTES,
    st.sampled_from([ResourceKey("GPU-0"), ResourceKey("GPU-1"), ResourceKey()]),
    st.none() | st.integers(0, 2**63),
)
KINDS = st.sampled_from(["gauge", "counter", "up_down_counter"])
CATALOGS = st.dictionaries(
    NAMES, st.tuples(KINDS, TEXTS, TEXTS, st.lists(SERIES, min_size=1, max_size=4)), min_size=1
)


@settings(max_examples=150, deadline=None)
@given(CATALOGS, st.data())
def test_random_collections_are_encoded_alike_while_series_come_and_go(
    catalog: dict[str, Any], data: st.DataObject
) -> None:
    reader, encoder = InMemoryMetricReader(), Encoder()
    provider = MeterProvider(
        [reader],
        lambda key: Resource({"host.name": "ß", "hw.id": key.device}, "https://schema"),
        shutdown_on_exit=False,
    )
    meter = provider.get_meter("otel-gpu", "1", "https://schema")
    now: dict[str, list[Reading]] = {}
    for name, (kind, _, description, _) in catalog.items():
        create = getattr(meter, f"create_observable_{kind}")
        create(name, [lambda _, name=name: list(now[name])], unit="W", description=description)

    for _ in range(data.draw(st.integers(1, 4))):
        for name, (_, _, _, series) in catalog.items():
            there = data.draw(st.lists(st.sampled_from(series), unique_by=id, max_size=4))
            now[name] = [Reading(data.draw(VALUES), each) for each in there]
        found = reader.get_metrics_data()
        if found is not None:
            assert encoded(found, encoder) == official(found)


# What is left out


def box_of(*readings: Reading) -> tuple[Box, InMemoryMetricReader]:
    reader = InMemoryMetricReader()
    box = Box([reader])
    box.power = list(readings)
    return box, reader


def test_a_metric_that_has_no_form_costs_only_itself_and_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reader, encoder = InMemoryMetricReader(), Encoder()
    box = Box([reader])
    observe: Any = [lambda _: [Reading(1.0, Series({}))]]
    text = "\udcff"  # of a file name that is not UTF-8
    box.provider.get_meter("otel-gpu", "1.2.3").create_observable_gauge("bad", observe, "1", text)

    requests = [
        ExportMetricsServiceRequest.FromString(encoded(_collect(reader), encoder)) for _ in "ab"
    ]

    assert [_points(request) for request in requests] == [POINTS, POINTS]
    assert encoder.left_out == 2
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("'bad': its 1 points cannot be encoded and are left out: ")


def test_an_empty_collection_is_no_request() -> None:
    assert Encoder().encode(MetricsData([])) == []


def test_points_of_another_provider_are_encoded_alike() -> None:
    """A Sum of the SDK's own points, with a start and exemplars of its own."""
    (resource_metrics,) = (each for each in collected().resource_metrics[:1])
    (scope_metrics,) = resource_metrics.scope_metrics
    metrics = [
        Metric(metric.name, metric.description, metric.unit, _plain(metric.data))
        for metric in scope_metrics.metrics
    ]
    scope = InstrumentationScope("theirs", "2", None, {"a": "b"})
    data = MetricsData(
        [ResourceMetrics(Resource({}), [ScopeMetrics(scope, metrics, "url")], "url")]
    )

    assert encoded(data) == official(data)


def _plain(data: Any) -> Any:
    points = list(data.data_points)
    if isinstance(data, Sum):
        return Sum(points, data.aggregation_temporality, data.is_monotonic)
    return type(data)(points)


# Large collections


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4_000))
def test_a_request_stays_within_the_limit_and_no_point_is_lost(limit: int) -> None:
    data = collected()

    parts = Encoder(limit).encode(data)

    whole = ExportMetricsServiceRequest()
    for body, points in parts:
        request = ExportMetricsServiceRequest.FromString(body)
        assert _points(request) == points
        assert len(body) <= limit or points == 1
        whole.MergeFrom(request)
    assert _values(whole) == _values(encode_metrics(data))


def _metrics(request: ExportMetricsServiceRequest) -> list[Any]:
    return [
        (resource_metrics.resource.SerializeToString(), scope.scope.name, metric)
        for resource_metrics in request.resource_metrics
        for scope in resource_metrics.scope_metrics
        for metric in scope.metrics
    ]


def _data(metric: Any) -> Any:
    return getattr(metric, metric.WhichOneof("data"))


def _points(request: ExportMetricsServiceRequest) -> int:
    return sum(len(_data(metric).data_points) for _, _, metric in _metrics(request))


def _values(request: ExportMetricsServiceRequest) -> list[Any]:
    return [
        (resource, scope, metric.name, metric.unit, point.attributes, _number(point))
        for resource, scope, metric in _metrics(request)
        for point in _data(metric).data_points
    ]


def _number(point: Any) -> Any:
    return point.count if hasattr(point, "bucket_counts") else point.WhichOneof("value")


# What is kept


class Watched(dict[str, str]):
    """Attributes of which one can tell whether they are still held."""


def test_what_vanished_leaves_nothing_behind() -> None:
    attributes = Watched({"hw.id": "GPU-0"})
    box, reader = box_of(Reading(1.0, Series(attributes, ResourceKey("GPU-0"))))
    encoder = Encoder()
    encoded(_collect(reader), encoder)
    held = weakref.ref(attributes)

    box.power = []
    del attributes
    for _ in range(2):
        encoded(_collect(reader), encoder)
    gc.collect()

    assert held() is None


def _collect(reader: InMemoryMetricReader) -> MetricsData:
    data = reader.get_metrics_data()
    assert data
    return data
