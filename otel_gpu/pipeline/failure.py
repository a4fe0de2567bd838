"""A push that failed: its kind, and whether that may pass by itself."""

from __future__ import annotations

from otel_gpu.model import OtelGpuError

PASSING_STATUSES = frozenset({"429", "502", "503", "504"})
"""HTTP statuses after which the same is sent again; every other one is final (OTLP specification,
"Retryable Response Codes")."""

PASSING_CODES = frozenset(
    {"CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"}
)
"""The gRPC codes likewise. RESOURCE_EXHAUSTED is one only where it says when to come again."""


class ExportError(OtelGpuError):
    """Points were not exported: `kind` is the `error.type`, which takes few values, then why."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
