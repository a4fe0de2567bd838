"""Instruments of every kind: asked for twice, misnamed, synchronous."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import Counter, Histogram
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    InMemoryMetricReader,
)
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation

from otel_gpu.provider import MeterProvider
from tests.provider.words import (
    GPU0,
    Reading,
    collect,
    found,
    observing,
    resources,
    series,
    values,
)


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
