"""A collection is a line of OTLP JSON, as the specification writes it."""

from __future__ import annotations

import json
from math import inf, nan
from typing import Any

import pytest
from google.protobuf.json_format import Parse
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricsData

from otel_gpu import single
from otel_gpu.config import Settings
from otel_gpu.model import ResourceKey
from otel_gpu.pipeline.otlp_json import line
from otel_gpu.provider import MeterProvider
from tests.pipeline.box import collected, observing, reading


def metrics(text: str) -> dict[str, dict[str, Any]]:
    """Give the metrics of a line by name; of several Resources, the last one's."""
    return {
        metric["name"]: metric
        for resource in json.loads(text)["resourceMetrics"]
        for scope in resource["scopeMetrics"]
        for metric in scope["metrics"]
    }


def gauge(*values: float) -> str:
    """Write a collection of one gauge, with a GPU for each value."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    made = [reading(value, ResourceKey(f"GPU-{at}")) for at, value in enumerate(values)]
    provider.get_meter("m").create_observable_gauge("hw.power", observing(*made))
    data = reader.get_metrics_data()
    provider.shutdown()
    assert data is not None
    return line(data)


def test_it_says_what_the_official_encoder_says() -> None:
    data = collected()
    assert Parse(line(data), ExportMetricsServiceRequest()) == encode_metrics(data)


def test_it_is_one_line_of_ascii() -> None:
    text = line(collected())
    assert text.isascii()
    assert "\n" not in text


def test_enums_are_integers_and_64_bit_integers_are_text() -> None:
    found = metrics(line(collected()))
    memory, sweeps = found["hw.gpu.memory.usage"]["sum"], found["otel_gpu.sweep.duration"]
    (point,) = sweeps["histogram"]["dataPoints"]
    assert memory["aggregationTemporality"] == sweeps["histogram"]["aggregationTemporality"] == 2
    assert memory["dataPoints"][0]["asInt"] == str(40 << 30)
    assert (point["count"], point["bucketCounts"]) == ("5", ["1", "2", "1", "1"])
    assert (point["sum"], point["explicitBounds"]) == (4.58203125, [0.01, 0.1, 1.0])
    assert point["timeUnixNano"].isdecimal()


@pytest.mark.parametrize("value", [0.1, 1e22, 5e-324, -0.0, 1 / 3])
def test_a_float_is_the_very_same_number_to_its_reader(value: float) -> None:
    (point,) = metrics(gauge(value))["hw.power"]["gauge"]["dataPoints"]
    assert repr(point["asDouble"]) == repr(value)


def test_what_is_no_number_is_not_written() -> None:
    text = gauge(nan, inf, -inf, 7.0)
    (point,) = metrics(text)["hw.power"]["gauge"]["dataPoints"]
    assert point["asDouble"] == 7
    assert not any(word in text for word in ("NaN", "Infinity"))


def test_a_collection_of_nothing_is_a_request_too() -> None:
    assert line(MetricsData([])) == '{"resourceMetrics":[]}'


def test_the_time_is_among_the_bytes_by_which_the_collector_tells_files_apart() -> None:
    """It takes the first 1000; all before the time is alike in every file of a machine."""
    settings = Settings(backend="simulated")
    text = single.as_otlp(settings, single.sweep(settings))
    assert 0 < text.find('"timeUnixNano":"') < 900
