"""What the official gRPC exporter says in its log is understood, whichever version says it."""

from __future__ import annotations

import pytest

from otel_gpu.pipeline.explained import explained

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
