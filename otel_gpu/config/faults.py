"""A fault: what is wrong with the configuration, and where; and the nearest word to a wrong one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

KeyPath = tuple[str | int, ...]
"""The way to a value: `("pipeline", 0, "otlp", "endpoint")`."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, or is worth a warning.

    `where` is `FILE:LINE`, the name of an environment variable or `command line`; `path` is the
    key, `sampling.fast`, or "" for the whole; `message` is what is wrong and what to do. As text
    it is one line, whatever characters a key or a value has.
    """

    where: str
    path: str
    message: str

    def __str__(self) -> str:
        text = ": ".join(part for part in (self.where, self.path, self.message) if part)
        return "".join(each if each.isprintable() else " " for each in text)


class RuleError(ValueError):
    """What a rule over several values found: for each, the way to it from there, and the words."""

    def __init__(self, *found: tuple[KeyPath, str]) -> None:
        super().__init__("; ".join(words for _, words in found))
        self.found = found


def dotted(path: KeyPath) -> str:
    """Write a key path as people do: `pipeline[0].otlp.endpoint`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def nearest(word: str, words: Iterable[str], likeness: float = 0.6) -> str | None:
    """Find the word that was probably meant, whatever its case and hyphens."""
    folded = {_folded(each): each for each in words}
    close = get_close_matches(_folded(word), folded, 1, likeness)
    return folded[close[0]] if close else None


def _folded(word: str) -> str:
    return word.lower().replace("-", "_")


def in_reading_order(faults: Iterable[Fault]) -> list[Fault]:
    """Sort the faults of the file by line; those from elsewhere come after, as they were found."""
    return sorted(dict.fromkeys(faults), key=_line)


def _line(fault: Fault) -> float:
    match = re.search(r":([0-9]+)(?::[0-9]+)?$", fault.where)
    return int(match[1]) if match else float("inf")
