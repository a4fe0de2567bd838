"""Facts of machines, healthy but for what a test changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from otel_gpu.doctor.facts import Facts, gather
from otel_gpu.doctor.facts.library import Candidate, Library, Origin
from otel_gpu.doctor.facts.module import Module, PciGpu
from otel_gpu.doctor.facts.nodes import Node, Nodes
from otel_gpu.doctor.facts.opening import Opening, Trouble
from otel_gpu.doctor.facts.packages import Package, Packages
from otel_gpu.doctor.facts.process import Namespace, Process
from otel_gpu.doctor.finding import Finding
from otel_gpu.doctor.matrix import Cell, Matrix, Row
from otel_gpu.model import Device, System

VERSION = "580.159.04"
REAL = f"/usr/lib64/libnvidia-ml.so.{VERSION}"
LIBRARY = Candidate("/usr/lib64/libnvidia-ml.so.1", Origin.STANDARD, REAL, VERSION)
GPUS = tuple(
    Device(uuid=f"GPU-{n}", index=n, minor=n, model="NVIDIA H200", pci_address=f"0000:0{n}:00.0")
    for n in (0, 1)
)
FULL = (1 << 41) - 1  # every capability

HEALTHY = Facts(
    library=Library((LIBRARY,)),
    nodes=Nodes(Node("nvidiactl"), (Node("nvidia0"), Node("nvidia1"))),
    module=Module(
        is_loaded=True,
        version=VERSION,
        params={"RmProfilingAdminOnly": "0", "ModifyDeviceFiles": "1"},
        gpus=tuple(gpu.pci_address for gpu in GPUS),
        pci=tuple(PciGpu(gpu.pci_address, "nvidia") for gpu in GPUS),
    ),
    process=Process(
        capabilities=FULL,
        namespace=Namespace(is_host=True, is_sure=True, evidence="the first"),
    ),
    packages=Packages(
        (Package("nvidia-ml-py", "13.615.71", brings_module=True),),
        "/site/pynvml.py",
        "/site/pynvml.py",
        {"nvidia-ml-py": "13.615.71"},
    ),
    opening=Opening(
        system=System(
            driver_version=VERSION,
            nvml_version=f"13.{VERSION}",
            cuda_version="13.0",
            devices=GPUS,
        ),
        is_persistent={"GPU-0": True, "GPU-1": True},
        matrix=Matrix(GPUS, (Row("hw.power", (Cell(1), Cell(1))),), (True, True)),
    ),
)


def shut(code: int, text: str = "NVML did not start", facts: Facts = HEALTHY) -> Facts:
    """Give facts of a driver that does not open."""
    return replace(facts, opening=Opening(trouble=Trouble(code, text), seconds=0.1))


def of_box(root: Path, code: int, environ: dict[str, str] | None = None) -> Facts:
    """Gather the facts of a machine in a folder whose driver does not open."""
    facts = gather("nvml", root, environ or {})
    return shut(code, facts=replace(facts, packages=HEALTHY.packages))


def ids(findings: Iterable[Finding]) -> list[str]:
    """Give the numbers of findings."""
    return [finding.id for finding in findings]
