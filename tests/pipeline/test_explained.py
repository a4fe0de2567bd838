"""What the official exporters say in their logs is understood, and kept out of ours."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.grpc import exporter as grpc_exporter
from opentelemetry.exporter.otlp.proto.http import _log_exporter as http_log_exporter
from opentelemetry.exporter.otlp.proto.http import metric_exporter as http_exporter
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter,
    MetricExportResult,
    MetricsData,
)

from otel_gpu.pipeline.cadence import ExportError
from otel_gpu.pipeline.explained import ExplainedExporter, explained
from otel_gpu.pipeline.overhearing import LOGGERS

TRANSIENT = "Transient error StatusCode.UNAVAILABLE encountered while exporting metrics to c:4317"


@pytest.mark.parametrize(
    ("said", "kind", "text"),
    [
        (
            ["Failed to export metrics to c:4317, error code: StatusCode.UNAUTHENTICATED"],
            "UNAUTHENTICATED",
            "Failed to export metrics to c:4317, error code: StatusCode.UNAUTHENTICATED",
        ),
        (
            [f"{TRANSIENT}, retrying in 1.02s.", "Shutdown in progress, aborting retry."],
            "UNAVAILABLE",
            TRANSIENT,
        ),
        (["Failed to encode metrics batch: x"], "_OTHER", "Failed to encode metrics batch: x"),
        ([], "_OTHER", "the exporter gave no reason"),
    ],
)
def test_the_kind_takes_few_values_and_the_text_names_the_cause(
    said: list[str], kind: str, text: str
) -> None:
    error = explained(said)
    assert (error.kind, str(error)) == (kind, text)


def test_the_loggers_are_those_of_the_official_exporters() -> None:
    official = (grpc_exporter.logger, http_exporter._logger, http_log_exporter._logger)
    assert set(LOGGERS) == {logger.name for logger in official}


class Grumbling(ConsoleMetricExporter):
    """Fails as an official exporter does: with words in its log, the same at each attempt."""

    def export(self, *_: Any, **__: Any) -> MetricExportResult:
        for _attempt in range(2):
            grpc_exporter.logger.error("error code: %s", "StatusCode.UNAVAILABLE")
        return MetricExportResult.FAILURE


def test_a_reason_is_heard_at_each_failure_and_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    exporter = ExplainedExporter(Grumbling())
    for _ in range(2):  # gRPC's own filter passes a text once in 20 seconds
        with pytest.raises(ExportError, match="UNAVAILABLE") as told:
            exporter.export(MetricsData([]))
        assert told.value.kind == "UNAVAILABLE"
    assert not caplog.records

    logging.getLogger(grpc_exporter.logger.name).error("of somebody else's exporter")
    assert [record.getMessage() for record in caplog.records] == ["of somebody else's exporter"]
