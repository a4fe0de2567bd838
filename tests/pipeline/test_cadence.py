"""The push reader keeps its rhythm whatever the exporter does, and ends in time."""

from __future__ import annotations

import time
from statistics import median, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.metrics.export import MetricExportResult
from opentelemetry.sdk.resources import Resource

from otel_gpu.model import ResourceKey
from otel_gpu.pipeline.cadence import next_tick_s, phase_s, until_tick_s
from otel_gpu.pipeline.push import PushReader
from otel_gpu.provider import MeterProvider
from tests.pipeline.box import Box
from tests.pipeline.exporting import NEVER_S, Exporter, Push, settled

# When it is time: pure functions


def test_nodes_are_spread_evenly_over_the_interval_and_each_keeps_its_place() -> None:
    phases = sorted(phase_s(f"node-{n}", 15.0) for n in range(2_000))

    assert phases[0] >= 0.0
    assert phases[-1] < 15.0
    assert pstdev(phases) == pytest.approx(15.0 / 12**0.5, rel=0.05)  # a uniform distribution's
    assert phase_s("node-7", 15.0) == phase_s("node-7", 15.0) != phase_s("node-8", 15.0)


@given(st.floats(0, 2e9), st.floats(0.1, 3_600), st.floats(0, 1, exclude_max=True))
def test_the_first_tick_is_within_an_interval_and_in_phase(
    unix_s: float, interval_s: float, part: float
) -> None:
    phase = part * interval_s

    wait_s = until_tick_s(unix_s, interval_s, phase)

    assert 0 <= wait_s <= interval_s
    off_s = (unix_s + wait_s - phase) % interval_s
    assert min(off_s, interval_s - off_s) < 1e-5


@given(st.floats(0, 1e6), st.floats(0, 1e4), st.floats(0.1, 3_600))
def test_the_next_tick_is_on_the_grid_and_still_to_come(
    tick_s: float, late_s: float, interval_s: float
) -> None:
    now_s = tick_s + late_s

    following_s, missed = next_tick_s(tick_s, now_s, interval_s)

    assert now_s - 1e-6 <= following_s <= now_s + interval_s + 1e-6
    assert following_s == tick_s + (missed + 1) * interval_s


# The thread


def test_exports_come_at_the_cadence(push: Push) -> None:
    exporter = Exporter()
    push(exporter, 0.2, node="here")

    exporter.wait(5)

    assert median(exporter.lateness_s(0.2, "here")) < 0.05  # the machine may be busy now and then


def test_a_slow_collector_costs_ticks_but_does_not_shift_them(push: Push) -> None:
    def slow() -> MetricExportResult:
        time.sleep(0.25)  # what a slow collector does
        return MetricExportResult.SUCCESS

    exporter = Exporter(slow)
    reader = push(exporter, 0.2, node="here")

    exporter.wait(4)
    stats = settled(reader, lambda stats: stats.missed >= 4)

    assert median(exporter.lateness_s(0.2, "here")) < 0.05
    assert stats.missed >= len(exporter.exported) - 1  # every other tick, at least


def test_nothing_happens_before_a_provider_knows_the_reader(
    caplog: pytest.LogCaptureFixture,
) -> None:
    exporter = Exporter()
    reader = PushReader(exporter, interval_s=0.1)
    assert not reader.force_flush(timeout_millis=5_000)
    assert exporter.exported == []

    box = Box()
    box.provider.add_metric_reader(reader)
    assert reader.force_flush()

    box.provider.shutdown()
    assert exporter.exported
    assert not caplog.records


def test_a_collection_that_raises_is_logged_and_the_next_one_is_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    troubles = [RuntimeError("the Resource cannot be made")]

    def resources(_key: ResourceKey) -> Resource:
        if troubles:
            raise troubles.pop()
        return Resource({})

    exporter = Exporter()
    reader = PushReader(exporter, interval_s=NEVER_S)
    provider = MeterProvider([reader], resources, shutdown_on_exit=False)
    provider.get_meter("m").create_counter("c").add(1)

    assert not reader.force_flush()
    assert "push: the collection failed" in caplog.text
    assert reader.force_flush()
    provider.shutdown()


def test_a_shutdown_exports_once_more(push: Push) -> None:
    exporter = Exporter()
    reader = push(exporter)

    reader.shutdown()
    reader.shutdown()

    assert len(exporter.exported) == 1
    assert exporter.shut_down.is_set()
    assert not reader._thread.is_alive()
