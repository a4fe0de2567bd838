"""The process: what its namespace, its privileges and its environment keep from it."""

from __future__ import annotations

from collections.abc import Iterator

from otel_gpu.doctor.facts import Facts
from otel_gpu.doctor.facts.process import CAP_SYS_ADMIN
from otel_gpu.doctor.finding import Entry, Finding, Severity

OWN_PIDS = Entry(
    id="GPU070",
    title="This process does not see the host's process ids",
    severity=Severity.WARNING,
    meaning="In a PID namespace of its own NVML lists no process on any GPU, without an error. All "
    "other readings are whole.",
    remedy="Run the container with the host's PID namespace (hostPID: true in Kubernetes, docker "
    "run --pid=host) if readings by process are wanted; else leave it so.",
)
ADMIN_ONLY = Entry(
    id="GPU071",
    title="Profiling is kept for administrators",
    severity=Severity.WARNING,
    meaning="The module is loaded with RmProfilingAdminOnly=1, and this process lacks "
    "CAP_SYS_ADMIN: profiling metrics (GPM) may be denied.",
    remedy="Load the module with NVreg_RestrictProfilingToAdminUsers=0 (a file in /etc/modprobe.d, "
    "then reload it), or give the container CAP_SYS_ADMIN.",
)
CUDA_CHOICE = Entry(
    id="GPU072",
    title="CUDA_VISIBLE_DEVICES is set, and does not matter here",
    severity=Severity.INFO,
    meaning="It chooses GPUs for CUDA. NVML ignores it, and so all GPUs are read.",
    remedy="To leave GPUs out, use the key gpus.include.",
)

ENTRIES = (OWN_PIDS, ADMIN_ONLY, CUDA_CHOICE)


def judge(facts: Facts) -> Iterator[Finding]:
    """Judge what surrounds the process."""
    if not facts.is_real:
        return
    process, namespace = facts.process, facts.process.namespace
    if namespace.is_host is False:
        sure = "" if namespace.is_sure else "probably: "
        yield OWN_PIDS.found(f"{sure}{namespace.evidence}")
    if facts.module.params.get("RmProfilingAdminOnly") == "1" and not process.has(CAP_SYS_ADMIN):
        yield ADMIN_ONLY.found(
            "RmProfilingAdminOnly: 1 in /proc/driver/nvidia/params",
            f"user {process.uid}, effective capabilities {process.capabilities:#x}",
        )
    if (choice := facts.environment.get("CUDA_VISIBLE_DEVICES")) is not None:
        yield CUDA_CHOICE.found(f"CUDA_VISIBLE_DEVICES={choice}")
