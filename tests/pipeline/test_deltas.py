"""A target that wants growth gets what was counted since it was last sent, and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Metric,
    MetricsData,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from otel_gpu.model import ResourceKey, Series
from otel_gpu.pipeline.deltas import PATIENCE, Deltas
from otel_gpu.pipeline.encoding import Encoder
from otel_gpu.points import Points
from tests.pipeline.box import collected

GPU = ResourceKey("GPU-0")
RESOURCE = Resource({"hw.id": "GPU-0"})
SCOPE = InstrumentationScope("otel-gpu")
CUMULATIVE, DELTA = AggregationTemporality.CUMULATIVE, AggregationTemporality.DELTA


def total(value: float, start_ns: int | None = None, **attributes: str) -> tuple[float, Series]:
    return value, Series(attributes, GPU, start_ns)


def at(time_ns: int, *rows: tuple[float, Series], name: str = "hw.energy") -> MetricsData:
    """Give a collection of one counter."""
    values, series = [value for value, _ in rows], [each for _, each in rows]
    points = Points(values, series, time_ns, started=True)
    metrics = [Metric(name, "", "J", Sum(points, CUMULATIVE, is_monotonic=True))] if rows else []
    return MetricsData([ResourceMetrics(RESOURCE, [ScopeMetrics(SCOPE, metrics, "")], "")])


def sent(data: MetricsData) -> list[tuple[float, int, int]]:
    """Give value, start and time of every point."""
    return [
        (point.value, point.start_time_unix_nano, point.time_unix_nano)
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in _points(metric)
    ]


def _points(metric: Metric) -> list[Any]:
    data: Any = metric.data
    assert (data.aggregation_temporality, data.is_monotonic) == (DELTA, True)
    return list(data.data_points)


def test_the_first_sight_is_a_lifetime_total_and_is_not_sent() -> None:
    assert Deltas().convert(at(100, total(5_000))).resource_metrics == []


def test_then_growth_is_sent_with_the_time_that_it_took_and_no_growth_is_a_fact() -> None:
    deltas = Deltas()
    found = [
        sent(deltas.convert(at(time_ns, total(value))))
        for time_ns, value in ((100, 5_000), (200, 5_007), (300, 5_007), (400, 5_007.5))
    ]

    assert found == [[], [(7, 100, 200)], [(0, 200, 300)], [(0.5, 300, 400)]]
    assert type(found[1][0][0]) is int


def test_a_counter_that_fell_was_reset_and_sends_what_it_counted_since() -> None:
    deltas = Deltas()
    deltas.convert(at(100, total(5_000)))

    assert sent(deltas.convert(at(200, total(3)))) == [(3, 100, 200)]
    assert sent(deltas.convert(at(300, total(4)))) == [(1, 200, 300)]


def test_a_reset_that_is_known_begins_where_it_was() -> None:
    deltas = Deltas()
    deltas.convert(at(100, total(5_000, 10)))

    assert sent(deltas.convert(at(200, total(6_000, 150)))) == [(6_000, 150, 200)]


def test_a_series_that_began_after_the_last_collection_is_all_growth() -> None:
    deltas = Deltas()
    deltas.convert(at(100, total(1, pod="a")))

    found = deltas.convert(at(200, total(1, pod="a"), total(9, 150, pod="b"), total(9, pod="c")))

    assert sent(found) == [(0, 100, 200), (9, 150, 200)]


def test_a_clock_that_is_set_back_makes_no_start_after_its_time() -> None:
    deltas = Deltas()
    deltas.convert(at(200, total(1, 10)))

    assert sent(deltas.convert(at(150, total(3, 10)))) == [(2, 150, 150)]


def test_a_start_that_is_not_known_any_more_is_no_reset() -> None:
    deltas = Deltas()
    deltas.convert(at(100, total(5_000, 10)))

    assert sent(deltas.convert(at(200, total(5_007)))) == [(7, 100, 200)]


def test_attributes_may_be_lists_and_1_is_not_true() -> None:
    def collection(time_ns: int, grown: int) -> MetricsData:
        attributes: list[Any] = [{"l": ["a", "b"]}, {"n": 1}, {"n": True}]
        rows = [(place + grown, Series(one, GPU)) for place, one in enumerate(attributes)]
        return at(time_ns, *rows)

    deltas = Deltas()
    deltas.convert(collection(100, 0))

    assert [value for value, *_ in sent(deltas.convert(collection(200, 5)))] == [5, 5, 5]


def test_scopes_are_told_apart() -> None:
    def collection(time_ns: int, *values: int) -> MetricsData:
        scopes = [
            replace(
                at(time_ns, total(value)).resource_metrics[0].scope_metrics[0],
                scope=InstrumentationScope(str(place)),
            )
            for place, value in enumerate(values)
        ]
        return MetricsData([ResourceMetrics(RESOURCE, scopes, "")])

    deltas = Deltas()
    deltas.convert(collection(100, 1, 50))

    assert [value for value, *_ in sent(deltas.convert(collection(200, 2, 53)))] == [1, 3]


def test_a_series_that_was_away_for_a_moment_lost_nothing() -> None:
    deltas = Deltas()
    deltas.convert(at(100, total(10, gpu="a")))
    for moment in range(PATIENCE):
        deltas.convert(at(200 + moment, total(1, gpu="b")))

    assert sent(deltas.convert(at(900, total(25, gpu="a")))) == [(15, 100, 900)]


def test_a_series_that_is_gone_for_long_is_forgotten() -> None:
    deltas = Deltas()
    deltas.convert(at(100, total(10, gpu="a")))
    for moment in range(PATIENCE + 1):
        deltas.convert(at(200 + moment, total(1, gpu="b")))

    assert len(deltas._totals) == 1
    assert sent(deltas.convert(at(900, total(25, gpu="a")))) == []


def test_what_may_fall_and_what_is_growth_already_stay_as_they_are() -> None:
    data, deltas = collected(), Deltas()
    deltas.convert(data)

    before = {metric.name: metric for metric in _metrics(data)}
    after = {metric.name: metric for metric in _metrics(deltas.convert(data))}

    assert before.keys() == after.keys()
    changed = {name for name in before if before[name] is not after[name]}
    assert changed == {"hw.energy"}


def _metrics(data: MetricsData) -> list[Metric]:
    return [
        metric
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ]


def test_resources_that_have_nothing_to_send_are_not_sent() -> None:
    assert Encoder().encode(Deltas().convert(at(100, total(1)))) == []


STEPS = st.lists(
    st.tuples(st.sampled_from(["grow", "reset", "away"]), st.integers(0, 100)), max_size=15
)


@settings(deadline=None)
@given(STEPS, st.booleans())
def test_all_growth_is_sent_once_whatever_happens(steps: Any, known: bool) -> None:  # noqa: FBT001 - hypothesis gives it by position
    deltas, encoder = Deltas(), Encoder()
    value, start_ns = 1_000, (1 if known else None)
    grown, received = 0, 0.0
    deltas.convert(at(100, total(value, start_ns)))
    for turn, (what, amount) in enumerate(steps, start=2):
        time_ns = 100 * turn
        if what == "reset" and amount < value:  # else nobody could tell without a start
            value, start_ns = amount, (time_ns - 50 if known else None)
        else:
            value += amount
        grown += amount
        there = [] if what == "away" else [total(value, start_ns)]
        data = deltas.convert(at(time_ns, *there))
        if what == "away":
            assert sent(data) == []
            continue
        ((delta, since_ns, now_ns),) = sent(data)
        assert delta >= 0
        assert since_ns < now_ns == time_ns
        received += delta
        ((body, _),) = encoder.encode(data)
        assert body == encode_metrics(data).SerializeToString()
    if steps and steps[-1][0] != "away" and "reset" not in [what for what, _ in _after_away(steps)]:
        assert received == grown


def _after_away(steps: Any) -> Any:
    """Give the steps at which a reset hides what was counted while a series was away."""
    return [
        (what, amount)
        for before, (what, amount) in zip([("grow", 0), *steps], steps, strict=False)
        if before[0] == "away"
    ]


@pytest.mark.parametrize("index", [0, -1, slice(0, 1)])
def test_points_of_growth_can_be_taken_one_by_one(index: Any) -> None:
    deltas = Deltas()
    deltas.convert(at(100, total(1, gpu="a"), total(1, gpu="b")))
    (metric,) = _metrics(deltas.convert(at(200, total(2, gpu="a"), total(4, gpu="b"))))
    data: Any = metric.data

    assert list(data.data_points)[index] == (
        data.data_points[index] if isinstance(index, int) else list(data.data_points[index])
    )
