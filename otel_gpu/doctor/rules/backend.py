"""The backend: whether it is this machine's driver that was asked at all."""

from __future__ import annotations

from collections.abc import Iterator

from otel_gpu.doctor.facts import Facts
from otel_gpu.doctor.finding import Entry, Finding, Severity

NOT_REAL = Entry(
    id="GPU090",
    title="The readings are not those of this machine's GPUs",
    severity=Severity.INFO,
    meaning="Another backend than nvml was asked for. Library, device files, kernel module and "
    "process were not judged.",
    remedy="Run otel-gpu doctor without --backend to examine this machine.",
)

ENTRIES = (NOT_REAL,)


def judge(facts: Facts) -> Iterator[Finding]:
    """Say what was left out."""
    if not facts.is_real:
        yield NOT_REAL.found(f"backend {facts.backend}")
