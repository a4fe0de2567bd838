"""Numbers that look like chance and are fixed by their names: the same words, the same number."""

from __future__ import annotations

from hashlib import blake2b


class Chance:
    """A source of numbers, named by words; each number has further words of its own.

    Python's `random` gives the next number of a sequence, so that a value would depend on how
    often was asked before. Here it depends on nothing but its name.
    """

    def __init__(self, *words: object) -> None:
        self._name = "/".join(map(str, words))

    def part(self, *words: object) -> Chance:
        """Give a source of its own for a part of what this one is for."""
        return Chance(self._name, *words)

    def octets(self, size: int, *words: object) -> bytes:
        """Give up to 64 even bytes."""
        return blake2b(str(Chance(self._name, *words)).encode(), digest_size=size).digest()

    def unit(self, *words: object) -> float:
        """Give a number from 0 to under 1."""
        return int.from_bytes(self.octets(6, *words), "big") / 2.0**48

    def between(self, low: float, high: float, *words: object) -> float:
        """Give a number from `low` to under `high`."""
        return low + (high - low) * self.unit(*words)

    def __str__(self) -> str:
        return self._name
