"""What callbacks may give, and what becomes of the rest."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics.export import (
    InMemoryMetricReader,
)

from otel_gpu.provider import MeterProvider
from tests.provider.words import (
    GPU0,
    GPU1,
    Reading,
    collect,
    observing,
    resources,
    series,
    values,
)


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
