"""The readings: which are missing on a GPU that answers, and for which reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from otel_gpu.doctor.facts import Facts
from otel_gpu.doctor.finding import Entry, Finding, Severity
from otel_gpu.doctor.matrix import Matrix
from otel_gpu.model import Reason

DENIED = Entry(
    id="GPU060",
    title="Readings are denied to this user",
    severity=Severity.WARNING,
    meaning="NVML answers them only to root or to a process with a capability (4).",
    remedy="Most of these need CAP_SYS_ADMIN; on GPUs in MIG mode, access to the files of "
    "/dev/nvidia-caps. Profiling metrics: load the module with "
    "NVreg_RestrictProfilingToAdminUsers=0.",
    follows=("GPU071",),
)
FAILED = Entry(
    id="GPU061",
    title="Readings failed",
    severity=Severity.WARNING,
    meaning="The GPU offers them, and gave no value, or one that cannot be true.",
    remedy="The table of readings says what was asked and what came back. Run doctor again; what "
    "stays so is worth an issue, with a recording (otel-gpu record FILE).",
    follows=("GPU055", "GPU056"),
)
NOT_OFFERED = Entry(
    id="GPU062",
    title="Readings that these GPUs do not offer",
    severity=Severity.INFO,
    meaning="The GPU has no such part or the driver no such function: passive boards have no fans, "
    "boards without NVLink no links, GPUs in MIG mode no utilization of the whole. They are left "
    "out, and never shown as 0.",
    remedy="Nothing is wrong. A newer driver may offer more.",
)

ENTRIES = (DENIED, FAILED, NOT_OFFERED)

REASONS: Mapping[Entry, frozenset[Reason]] = {
    DENIED: frozenset({Reason.PERMISSION}),
    NOT_OFFERED: frozenset({Reason.UNSUPPORTED}),
    FAILED: frozenset(Reason) - {Reason.PERMISSION, Reason.UNSUPPORTED, Reason.PID_NAMESPACE},
}


def judge(facts: Facts) -> Iterator[Finding]:
    """Judge the matrix of the GPUs that answer; that one does not is a finding of its own."""
    matrix = facts.opening.matrix.answering()
    for entry, reasons in REASONS.items():
        if gaps := matrix.gaps(reasons):
            yield entry.found(*(told(matrix, metric, names) for metric, names in gaps.items()))


def told(matrix: Matrix, metric: str, names: tuple[str, ...]) -> str:
    """Say on which GPUs, in few words when it is on all."""
    return f"{metric}: {'every GPU' if len(names) == len(matrix.devices) else ', '.join(names)}"
