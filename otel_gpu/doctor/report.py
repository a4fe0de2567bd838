"""The outcome of an examination: findings, the facts behind them, the matrix, the versions."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from otel_gpu import __version__
from otel_gpu.doctor.facts import Facts
from otel_gpu.doctor.finding import Finding, Severity
from otel_gpu.doctor.matrix import Cell, Matrix, label
from otel_gpu.doctor.rules import CATALOGUE, reasons
from otel_gpu.model import System

FORMAT = 1  # of the JSON document; grows when a key changes its meaning or goes


@dataclass(frozen=True, slots=True)
class Report:
    """What doctor found. The findings are in the order in which they are to be dealt with."""

    findings: tuple[Finding, ...]
    facts: Facts
    matrix: Matrix = field(default_factory=Matrix)
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def healthy(self) -> bool:
        """Whether nothing keeps readings away; warnings do not count."""
        return not self.of(Severity.ERROR)

    def of(self, severity: Severity) -> tuple[Finding, ...]:
        """Give the findings of one severity."""
        return tuple(one for one in self.findings if CATALOGUE[one.id].severity is severity)

    def to_json(self) -> str:
        """Write it as one JSON document, always with the same keys in the same order."""
        document = {
            "format": FORMAT,
            "healthy": self.healthy,
            "backend": self.facts.backend,
            "findings": [self._finding(finding) for finding in self.findings],
            "versions": dict(self.versions),
            "gpus": [asdict(device) for device in self.matrix.devices],
            "readings": readings(self.matrix),
            "facts": plain(self.facts),
        }
        return json.dumps(document, indent=2, ensure_ascii=False)

    def _finding(self, finding: Finding) -> dict[str, Any]:
        entry = CATALOGUE[finding.id]
        return {
            "id": finding.id,
            "severity": str(entry.severity),
            "title": entry.title,
            "evidence": list(finding.evidence),
            "meaning": entry.meaning,
            "remedy": entry.remedy,
            "follows": list(reasons(finding, self.findings)),
            "docs": entry.anchor,
        }


def readings(matrix: Matrix) -> dict[str, dict[str, Any]]:
    """Write the matrix: metric, then GPU."""
    return {
        row.metric: {
            label(device): {"state": cell.state, "points": cell.points, "missing": details(cell)}
            for device, cell in zip(matrix.devices, row.cells, strict=True)
            if cell is not None
        }
        for row in matrix.rows
    }


def details(cell: Cell) -> list[str]:
    """Write what is missing of one metric on one GPU."""
    return list(cell.details)


def plain(facts: Facts) -> dict[str, Any]:
    """Write the facts, without what stands elsewhere in the document."""
    document = asdict(facts)
    del document["backend"], document["opening"]["matrix"]
    return document


def versions(facts: Facts) -> dict[str, str]:
    """Collect the versions that are known: ours, Python's, the packages', the driver's sides."""
    system = facts.opening.system or System()
    known = {
        "otel-gpu": __version__,
        "python": platform.python_version(),
        **facts.packages.versions,
    }
    if facts.is_real:
        known |= {"kernel module": facts.module.version, "library": facts.library.version}
    known |= {
        "driver": system.driver_version,
        "NVML": system.nvml_version,
        "CUDA": system.cuda_version,
    }
    return {name: version for name, version in known.items() if version}
