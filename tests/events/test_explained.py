"""What the official exporters say in their logs is understood, and kept out of ours."""

from __future__ import annotations

import logging

import pytest
from opentelemetry.exporter.otlp.proto.grpc import exporter as grpc_exporter
from opentelemetry.exporter.otlp.proto.http import _log_exporter as http_log_exporter
from opentelemetry.exporter.otlp.proto.http import metric_exporter as http_exporter

from otel_gpu.events.explained import explained
from otel_gpu.pipeline.overhearing import LOGGERS, overhearing

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


def test_what_an_exporter_says_during_an_export_is_kept_out_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    grumbling = logging.getLogger(grpc_exporter.logger.name)

    for _ in range(2):  # gRPC's own filter passes a text once in 20 seconds
        with overhearing() as said:
            grumbling.error("error code: %s", "StatusCode.UNAVAILABLE")
        assert explained(said).kind == "UNAVAILABLE"
    assert not caplog.records

    grumbling.error("of somebody else's exporter")
    assert [record.getMessage() for record in caplog.records] == ["of somebody else's exporter"]
