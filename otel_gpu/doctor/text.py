"""The report and the catalogue in words: for a terminal, and as a page of the docs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from otel_gpu.doctor.finding import Entry, Finding, Severity
from otel_gpu.doctor.matrix import OK, Cell, Matrix, label
from otel_gpu.doctor.report import Report
from otel_gpu.doctor.rules import CATALOGUE, ROOMS, reasons

WIDTH = 100
MOST_LINES = 12  # of evidence on a terminal; the JSON document has all
INDENT = " " * 11

HEAD = """# Troubleshooting

`otel-gpu doctor` says what stands between you and a reading, with the evidence and the remedy, and
exits with 1 when it found an error. This page has everything that it can find, by number, and is
made from the same catalogue; `make render` rewrites it.

What comes first is the more likely cause of what comes later: library, device files, kernel
module, start, GPUs, readings.
"""


def lines(report: Report) -> Iterator[str]:
    """Write a report for a terminal, line by line, the gravest first."""
    yield summary(report)
    for finding in report.findings:
        yield ""
        yield from described(finding, report)
    for part in (gpus(report.matrix), gaps(report.matrix.answering()), versions(report)):
        yield from part


def summary(report: Report) -> str:
    """Say in one line how it is."""
    counts = [counted(len(report.of(severity)), severity) for severity in Severity]
    verdict = "healthy" if report.healthy else "not healthy"
    return f"otel-gpu doctor, backend {report.facts.backend}: {verdict}; {', '.join(counts)}"


def counted(number: int, severity: Severity) -> str:
    """Say how many there are of a severity."""
    word = "notes" if severity is Severity.INFO else f"{severity}s"
    return f"{number} {word if number != 1 else word.removesuffix('s')}"


def described(finding: Finding, report: Report) -> Iterator[str]:
    """Write one finding; where it follows from another, the other's remedy is the one to take."""
    entry = CATALOGUE[finding.id]
    yield f"{entry.severity.upper():<8}{finding.id}  {entry.title}"
    shown = finding.evidence[:MOST_LINES]
    left = len(finding.evidence) - len(shown)
    more = (f"and {left} more (--format json has all)",) if left else ()
    yield from block("evidence", (*shown, *more))
    if causes := tuple(reasons(finding, report.findings)):
        yield from block("follows", (f"from {', '.join(causes)}: deal with that first",))
    else:
        yield from block("remedy", (entry.remedy,))
    yield from block("more", (entry.anchor,))


def block(name: str, paragraphs: Iterable[str]) -> Iterator[str]:
    """Write paragraphs beside their name."""
    for place, paragraph in enumerate(paragraphs):
        yield textwrap.fill(
            paragraph,
            WIDTH,
            initial_indent=f"  {'' if place else name:<9}",
            subsequent_indent=INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )


def gpus(matrix: Matrix) -> Iterator[str]:
    """List the GPUs and instances that are read."""
    if matrix.devices:
        yield from ("", "GPUs")
    for device in matrix.devices:
        what = device.mig_profile if device.is_instance else device.model
        note = "  does not answer" if device in matrix.silent else ""
        yield f"  {label(device):<18}{what:<24} {device.uuid}  {device.pci_address}{note}".rstrip()


def gaps(matrix: Matrix) -> Iterator[str]:
    """List the metrics that are not whole on every GPU, and say how many are."""
    if not matrix.rows:
        return
    whole = sum(all(cell is None or cell.state == OK for cell in row.cells) for row in matrix.rows)
    yield from (
        "",
        f"Readings: {whole} of {len(matrix.rows)} metrics are whole on every GPU that answers",
    )
    groups: dict[tuple[str, Cell], list[str]] = {}
    for metric, device, cell in matrix.cells():
        if cell.state != OK:
            groups.setdefault((metric, cell), []).append(label(device))
    for (metric, cell), names in groups.items():
        where = "every GPU" if len(names) == len(matrix.devices) else ", ".join(names)
        yield f"  {metric}: {cell.state} on {where}"
        yield from (f"    {detail}" for detail in cell.details)


def versions(report: Report) -> Iterator[str]:
    """List the versions."""
    yield from ("", "Versions")
    for name, version in report.versions.items():
        yield f"  {name:<32}{version}"


def markdown() -> str:
    """Write docs/troubleshooting.md: every entry of the catalogue, a section for each room."""
    parts = [HEAD]
    for room, (entries, _) in ROOMS.items():
        parts += [f"## {room}\n", *map(section, entries)]
    return "\n".join(parts)


def section(entry: Entry) -> str:
    """Write one entry; its heading is the number alone, so that the anchor never changes."""
    follows = ", ".join(f"[{number}](#{number.lower()})" for number in entry.follows)
    after = f"Follows from {follows}, where that is found too.\n\n" if follows else ""
    return (
        f"### {entry.id}\n\n**{entry.title}** ({entry.severity})\n\n{entry.meaning}\n\n"
        f"{after}What to do: {entry.remedy}\n"
    )
