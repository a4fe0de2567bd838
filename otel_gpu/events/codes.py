"""What each Xid code means and what to do about it, in our own words: `codes.tsv`, read at import.

Codes and their symbols are the driver's (nverror.h); the class follows what NVIDIA advises to do at
once. What the driver itself asks for (`nvidia.gpu.recovery.status`) knows the board, and wins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files

from otel_gpu.events.record import Severity


class XidClass(StrEnum):
    """How far an Xid reaches; the `nvidia.gpu.xid.class` attribute."""

    NODE = "node"  # hands, or a reboot, are needed
    RESET = "reset"  # the GPU needs a reset
    LINK = "link"  # the path to another GPU, a switch or the CPU is to be looked at
    APPLICATION = "application"  # a program failed, the GPU is well
    INFO = "info"  # nothing failed, or nothing that stops work


SEVERITIES: Mapping[XidClass, Severity] = {
    XidClass.NODE: Severity.FATAL,
    XidClass.RESET: Severity.ERROR,
    XidClass.LINK: Severity.ERROR,
    XidClass.APPLICATION: Severity.WARN,
    XidClass.INFO: Severity.INFO,
}

ACTIONS: Mapping[str, str] = {
    "nothing": "Nothing is to be done.",
    "watch": "Nothing is to be done at once; if it comes again and jobs fail, collect "
    "nvidia-bug-report.sh and ask the vendor.",
    "watch_memory": "Watch hw.errors and the remapped rows; a board on which they keep growing is "
    "to be replaced.",
    "restart_job": "Restart the job. If it fails again on this GPU and not on others, drain the "
    "GPU and run diagnostics (dcgmi diag -r 3).",
    "fix_program": "Restart the job, and look for the fault in it (compute-sanitizer). If many "
    "programs fail on this GPU alone, drain it and run diagnostics.",
    "follow_earlier": "Act on the Xid that came before it on this GPU. Where there is none, and "
    "nobody ended the program, restart the job.",
    "restart_and_reset": "Restart the job that was ended, and reset the GPU when it is idle, so "
    "that the faulty row is replaced.",
    "reset_gpu": "Drain the GPU and reset it (nvidia-smi --gpu-reset). If it comes back, reboot "
    "the node, then have the board examined.",
    "reset_when_idle": "Let jobs go on; reset the GPU when it is idle.",
    "reset_and_replace": "Drain the GPU and reset it (nvidia-smi --gpu-reset). If it comes back, "
    "have the board replaced.",
    "check_link": "Look at the link's errors (nvidia-smi nvlink --errorcounters) and at both of "
    "its ends. If jobs fail, drain and reset the GPUs of the link.",
    "check_link_and_reset": "Drain the GPU and reset it (nvidia-smi --gpu-reset). If it comes "
    "back, have the link's connectors and its other end examined.",
    "recovery_action": "Do what nvidia.gpu.recovery.status asks for, and look for the Xid before "
    "this one.",
    "restart_machine": "Restart the virtual machine.",
    "update_driver": "Bring the drivers of host and guest to versions that fit each other.",
    "turn_ecc_on": "Turn error correction on (nvidia-smi --ecc-config=1), which replaces faulty "
    "rows, and reboot.",
    "repair_node": "Drain the node and power it off and on; a reboot may not do. Check power, "
    "temperature, cables and seating. If it comes back, have the board replaced.",
}
"""Advice, by the word that stands for it in the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid:
    """One code: how far it reaches, a short name, and a sentence or two each for what and now what.

    `severity` is of the OTel log record that tells of it.
    """

    code: int
    reach: XidClass
    name: str
    meaning: str
    action: str
    severity: Severity


def explained(code: int) -> Xid:
    """Give what is known of a code, or in honest words that nothing is."""
    return CODES.get(code) or unknown(code)


def unknown(code: int) -> Xid:
    """Describe a code that is not in the table.

    It counts as `info`, as nobody is to be woken by a guess, but its record is a warning.
    """
    return Xid(
        code=code,
        reach=XidClass.INFO,
        name="unknown code",
        meaning=f"This version of otel-gpu does not know Xid {code}.",
        action="Look it up in NVIDIA's Xid catalog; nvidia.gpu.recovery.status says whether the "
        "driver asks for something.",
        severity=Severity.WARN,
    )


def table(text: str) -> dict[int, Xid]:
    """Read the table: tab-separated, a heading, codes as `39-41,70`. ValueError: a code twice."""
    found: dict[int, Xid] = {}
    for line in text.splitlines()[1:]:
        codes, reach, name, meaning, action = line.split("\t")
        for code in numbers(codes):
            if code in found:
                raise ValueError(f"codes.tsv: Xid {code} stands there twice")
            found[code] = Xid(
                code=code,
                reach=XidClass(reach),
                name=name,
                meaning=meaning,
                action=ACTIONS[action],
                severity=SEVERITIES[XidClass(reach)],
            )
    return found


def numbers(codes: str) -> Iterator[int]:
    """Give the codes of one line."""
    for part in codes.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


CODES: Mapping[int, Xid] = table(
    files("otel_gpu.events").joinpath("codes.tsv").read_text(encoding="utf-8")
)
"""Every code that we can explain."""
