"""A signal of straight pieces that repeats: its value, integral and lag, in closed form.

Whoever asks for a value at one moment gets the same as whoever asked all the time: nothing is
stepped from one question to the next.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, count, pairwise
from math import ceil, exp
from typing import NamedTuple


class Piece(NamedTuple):
    """A straight line that lasts some seconds; the next piece may begin elsewhere."""

    seconds: float
    start: float
    end: float

    @property
    def slope(self) -> float:
        """Change per second."""
        return (self.end - self.start) / self.seconds

    def integral(self, seconds: float) -> float:
        """Integrate over the first `seconds` of it."""
        return seconds * (self.start + self.slope * seconds / 2)

    def lag(self, seconds: float, constant: float, begun: float) -> float:
        """Solve x' = (piece - x) / constant from x = `begun`, `seconds` into it."""
        behind = self.slope * constant
        settled = self.start + self.slope * seconds - behind
        return settled + (begun - self.start + behind) * exp(-seconds / constant)


class Curve:
    """Pieces one after the other, for ever, from second 0 on (and backwards before it)."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self.pieces = tuple(piece for piece in pieces if piece.seconds > 0)
        self._starts = list(accumulate((piece.seconds for piece in self.pieces), initial=0.0))
        self._totals = list(
            accumulate((piece.integral(piece.seconds) for piece in self.pieces), initial=0.0)
        )
        self.period = self._starts.pop()
        self._total = self._totals.pop()
        self.mean = self._total / self.period

    def at(self, seconds: float) -> float:
        """Give its value at a moment."""
        _, place, since = self.find(seconds)
        piece = self.pieces[place]
        return piece.start + piece.slope * since

    def integral(self, seconds: float) -> float:
        """Integrate from second 0 to a moment: value times seconds."""
        cycles, place, since = self.find(seconds)
        return cycles * self._total + self._totals[place] + self.pieces[place].integral(since)

    def find(self, seconds: float) -> tuple[float, int, float]:
        """Give the cycle that a moment is in, the place of its piece, and the seconds into it."""
        cycle, within = divmod(seconds, self.period)
        place = bisect_right(self._starts, within) - 1
        return cycle, place, within - self._starts[place]


class Lag:
    """What follows a curve with a time constant, as a temperature follows power.

    It has followed for ever: at the end of a cycle it is where it began.
    """

    def __init__(self, curve: Curve, constant: float) -> None:
        self._curve, self._constant = curve, constant
        from_zero = self._run(0.0)[-1]
        begun = from_zero / (1 - exp(-curve.period / constant))
        self._begun = self._run(begun)

    def at(self, seconds: float) -> float:
        """Give its value at a moment."""
        _, place, since = self._curve.find(seconds)
        return self._curve.pieces[place].lag(since, self._constant, self._begun[place])

    def _run(self, begun: float) -> list[float]:
        """Follow one cycle, and give where each piece begins, and the end."""
        values = [begun]
        for piece in self._curve.pieces:
            values.append(piece.lag(piece.seconds, self._constant, values[-1]))
        return values


def clipped(curve: Curve, limit: float) -> Curve:
    """Hold a curve at a limit wherever it would exceed it."""
    return _cut(curve, limit, lambda value: min(value, limit))


def excess(curve: Curve, limit: float) -> Curve:
    """Give 1 wherever a curve exceeds a limit, else 0."""
    pieces = (part for piece in curve.pieces for part in _split(piece, limit))
    over = ((part.seconds, float(part.start + part.end > 2 * limit)) for part in pieces)
    return Curve(Piece(seconds, value, value) for seconds, value in over)


def surplus(curve: Curve, limit: float) -> Curve:
    """Give how far a curve is above a limit, as a part of the way to 1; 0 where it is below."""
    return _cut(curve, limit, lambda value: max(0.0, value - limit) / (1 - limit))


def roughened(curve: Curve, seconds: float, factor: Callable[[int], float]) -> Curve:
    """Bend every piece each few seconds, by the factor that goes with the number of the bend."""
    numbers = count()
    bent = (part for piece in curve.pieces for part in _bent(piece, seconds, factor, numbers))
    return Curve(bent)


def _bent(
    piece: Piece, seconds: float, factor: Callable[[int], float], numbers: Iterator[int]
) -> Iterator[Piece]:
    parts = ceil(piece.seconds / seconds) if piece.start or piece.end else 1
    rise = (piece.end - piece.start) / parts
    inner = [(piece.start + rise * part) * factor(next(numbers)) for part in range(1, parts)]
    for start, end in pairwise([piece.start, *inner, piece.end]):
        yield Piece(piece.seconds / parts, start, end)


def _cut(curve: Curve, limit: float, change: Callable[[float], float]) -> Curve:
    parts = (part for piece in curve.pieces for part in _split(piece, limit))
    return Curve(Piece(part.seconds, change(part.start), change(part.end)) for part in parts)


def _split(piece: Piece, limit: float) -> tuple[Piece, ...]:
    """Cut a piece in two where it crosses a limit."""
    if (piece.start - limit) * (piece.end - limit) >= 0:
        return (piece,)
    cross = (limit - piece.start) / piece.slope
    return (Piece(cross, piece.start, limit), Piece(piece.seconds - cross, limit, piece.end))
