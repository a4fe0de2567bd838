"""The provider collects what the stock SDK collects, and keeps nothing of it."""

from __future__ import annotations

import gc
import json
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.metrics import Observation
from opentelemetry.sdk.metrics import MeterProvider as StockProvider
from opentelemetry.sdk.metrics.export import (
    InMemoryMetricReader,
)
from opentelemetry.sdk.resources import Resource

from otel_gpu.model import NODE, Owner, ResourceKey
from otel_gpu.provider import MeterProvider, SeriesPoint
from tests.provider.words import (
    GPU0,
    GPU1,
    Reading,
    collect,
    comparable,
    found,
    instrument_all,
    observing,
    read,
    resources,
    series,
    values,
)


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
