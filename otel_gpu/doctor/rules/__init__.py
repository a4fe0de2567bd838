"""The rooms of the catalogue, in the order in which a reading depends on them.

Each has its entries and the one function that judges the facts by them. What comes first is the
more likely cause of what comes later. A further room (the pipeline, Kubernetes) is one more line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from otel_gpu.doctor.facts import Facts
from otel_gpu.doctor.finding import Entry, Finding, Severity
from otel_gpu.doctor.rules import (
    backend,
    gpus,
    library,
    module,
    nodes,
    opening,
    packages,
    process,
    readings,
)

Judge = Callable[[Facts], Iterable[Finding]]

ROOMS: Mapping[str, tuple[tuple[Entry, ...], Judge]] = {
    "The library": (library.ENTRIES, library.judge),
    "The Python binding": (packages.ENTRIES, packages.judge),
    "The device files": (nodes.ENTRIES, nodes.judge),
    "The kernel module": (module.ENTRIES, module.judge),
    "Starting NVML": (opening.ENTRIES, opening.judge),
    "The GPUs": (gpus.ENTRIES, gpus.judge),
    "The readings": (readings.ENTRIES, readings.judge),
    "The process": (process.ENTRIES, process.judge),
    "The backend": (backend.ENTRIES, backend.judge),
}

CATALOGUE: Mapping[str, Entry] = {
    entry.id: entry for entries, _ in ROOMS.values() for entry in entries
}
"""Every entry by its id, in the order of the rooms."""

PLACES = {number: place for place, number in enumerate(CATALOGUE)}


def judge(facts: Facts) -> tuple[Finding, ...]:
    """Give all that is found in these facts, the gravest and then the most causal first."""
    return ordered(finding for _, room in ROOMS.values() for finding in room(facts))


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Put errors before warnings and those before notes, and in each what causes others first."""
    found = tuple(findings)
    return tuple(one for severity in Severity for one in causal(severity, found))


def causal(severity: Severity, found: tuple[Finding, ...]) -> Iterator[Finding]:
    """Give the findings of a severity: those without a cause here, then what follows from them."""
    alike = (one for one in found if CATALOGUE[one.id].severity is severity)
    left = sorted(alike, key=lambda one: (any(reasons(one, found)), PLACES[one.id]))
    while left:
        first = next(one for one in left if not any(reasons(one, left)))
        left.remove(first)
        yield first


def reasons(finding: Finding, found: Iterable[Finding]) -> Iterator[str]:
    """Give the ids among these findings that a finding follows from."""
    follows = CATALOGUE[finding.id].follows
    return (other.id for other in found if other.id in follows)
