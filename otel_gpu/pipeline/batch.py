"""One export, made ready to be sent: now or after an outage, the bytes are the same."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Batch:
    """`body` is gzip of an ExportMetricsServiceRequest; `collected_ns` is Unix time."""

    body: bytes
    points: int
    collected_ns: int
