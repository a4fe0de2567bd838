"""What became of each export is counted, timed, and told when it changes."""

from __future__ import annotations

import logging
import threading
import time

import pytest
from opentelemetry.sdk.metrics.export import MetricExportResult

from otel_gpu.model import Attributes
from otel_gpu.pipeline.failure import ExportError
from tests.pipeline.box import POINTS
from tests.pipeline.exporting import PATIENCE_S, Exporter, Push, raising, settled


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
