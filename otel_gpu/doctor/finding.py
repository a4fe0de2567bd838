"""What a finding is: a numbered entry of the catalogue, and the evidence that it applies here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

PAGE = "docs/troubleshooting.md"


class Severity(StrEnum):
    """How bad it is: an error keeps readings away, a warning makes some poorer, info explains."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """An entry of the catalogue that applies here, and what shows it, a line each."""

    id: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What doctor can find: everything that is true of it wherever it is found.

    `follows` names entries that, where they are found as well, are the reason for this one: then
    it is shown after them, and theirs is the remedy.
    """

    id: str
    title: str
    severity: Severity
    meaning: str
    remedy: str
    follows: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """Where the docs describe it."""
        return f"{PAGE}#{self.id.lower()}"

    def found(self, *evidence: str) -> Finding:
        """Say that it applies here."""
        return Finding(self.id, evidence)
