"""The push reader keeps its rhythm whatever the exporter does, and ends in time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from statistics import median, pstdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData
from opentelemetry.sdk.resources import Resource

from otel_gpu.model import Attributes, ResourceKey
from otel_gpu.pipeline.cadence import (
    ExportError,
    ExportStats,
    PushReader,
    next_tick_s,
    phase_s,
    until_tick_s,
)
from otel_gpu.provider import MeterProvider
from tests.pipeline.box import POINTS, Box

PATIENCE_S = 10.0
NEVER_S = 3600.0

Answer = Callable[[], MetricExportResult]


class Exporter(MetricExporter):
    """Keeps what it is given, and does what the test says."""

    def __init__(self, answer: Answer = lambda: MetricExportResult.SUCCESS) -> None:
        super().__init__()
        self.answer = answer
        self.exported: list[MetricsData] = []
        self.began_unix_s: list[float] = []
        self.came = threading.Condition()
        self.shut_down = threading.Event()

    def export(self, metrics_data: MetricsData, *_: Any, **__: Any) -> MetricExportResult:
        with self.came:
            self.exported.append(metrics_data)
            self.began_unix_s.append(time.time())
            self.came.notify_all()
        return self.answer()

    def wait(self, count: int) -> None:
        with self.came:
            assert self.came.wait_for(lambda: len(self.exported) >= count, PATIENCE_S)

    def lateness_s(self, interval_s: float, node: str) -> list[float]:
        """Give how long after the node's ticks, on the wall clock, the exports began."""
        phase = phase_s(node, interval_s)
        return [(unix_s - phase) % interval_s for unix_s in self.began_unix_s]

    def force_flush(self, *_: Any) -> bool:
        return True

    def shutdown(self, *_: Any, **__: Any) -> None:
        self.shut_down.set()


Push = Callable[..., PushReader]


@pytest.fixture
def push() -> Iterator[Push]:
    """Make readers that are registered, and shut down after the test."""
    boxes: list[Box] = []

    def make(exporter: Exporter, interval_s: float = NEVER_S, **options: Any) -> PushReader:
        reader = PushReader(exporter, interval_s=interval_s, **options)
        boxes.append(Box([reader]))
        return reader

    yield make
    for box in boxes:
        box.provider.shutdown(timeout_millis=100)


def raising(error: Exception) -> Answer:
    def answer() -> MetricExportResult:
        raise error

    return answer


def settled(reader: PushReader, enough: Callable[[ExportStats], bool]) -> ExportStats:
    deadline_s = time.monotonic() + PATIENCE_S
    while not enough(reader.stats):
        assert time.monotonic() < deadline_s, reader.stats
        time.sleep(0.005)
    return reader.stats


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


def test_the_thread_survives_whatever_a_collection_or_an_export_raises(
    push: Push, caplog: pytest.LogCaptureFixture
) -> None:
    exporter = Exporter(raising(OSError("no route to host")))
    reader = push(exporter)
    for _ in range(2):
        assert not reader.force_flush()
    exporter.answer = raising(ExportError("503", "the collector is full"))
    assert not reader.force_flush()
    exporter.answer = lambda: MetricExportResult.FAILURE
    assert not reader.force_flush()
    assert reader.stats.last_success_ns is None

    exporter.answer = lambda: MetricExportResult.SUCCESS
    caplog.set_level(logging.INFO, "otel_gpu")
    before_ns = time.time_ns()
    assert reader.force_flush()

    stats = reader.stats
    assert stats.failed == {"OSError": 2 * POINTS, "503": POINTS, "_OTHER": POINTS}
    assert (stats.exported, stats.inflight) == (POINTS, 0)
    assert stats.last_error == "the exporter gave no reason"
    assert stats.last_success_ns
    assert stats.last_success_ns >= before_ns
    assert [record.getMessage() for record in caplog.records] == [
        f"push: {POINTS} points were not exported: no route to host",
        "push: accepted again, after 4 failures",
    ]


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


def test_each_export_is_timed_for_the_agents_own_histogram(push: Push) -> None:
    recorded: list[tuple[str, float, Attributes]] = []
    exporter = Exporter()
    reader = push(exporter, record=lambda *value: recorded.append(value))
    reader.force_flush()
    exporter.answer = raising(ExportError("429", "slow down"))
    reader.force_flush()

    assert [(name, attributes) for name, _, attributes in recorded] == [
        ("otel.sdk.exporter.operation.duration", ()),
        ("otel.sdk.exporter.operation.duration", (("error.type", "429"),)),
    ]
    assert all(0 <= seconds < 1 for _, seconds, _ in recorded)


def test_what_is_under_way_is_counted(push: Push) -> None:
    release = threading.Event()

    def wait() -> MetricExportResult:
        release.wait(PATIENCE_S)
        return MetricExportResult.SUCCESS

    exporter = Exporter(wait)
    reader = push(exporter)
    assert not reader.force_flush(timeout_millis=50)  # it does not wait longer than it is told to
    exporter.wait(1)
    assert reader.stats.inflight == POINTS
    release.set()
    assert settled(reader, lambda stats: stats.exported == POINTS).inflight == 0


def test_a_shutdown_exports_once_more(push: Push) -> None:
    exporter = Exporter()
    reader = push(exporter)

    reader.shutdown()
    reader.shutdown()

    assert len(exporter.exported) == 1
    assert exporter.shut_down.is_set()
    assert not reader._thread.is_alive()
