"""One line of a benchmark's table: what we cost, what the baseline costs, and what must hold."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """`baseline` is None where there is none; then `bound` is about `ours`."""

    name: str
    ours: float
    baseline: float | None
    unit: str
    bound: str
    holds: bool
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times more the baseline costs."""
        return None if self.baseline is None else self.baseline / self.ours


def at_least(name: str, ours_s: float, stock_s: float, times: float, note: str = "") -> Figure:
    """Compare CPU seconds with the stock SDK's: it has to cost so many times more."""
    return Figure(
        name,
        ours_s * 1e3,
        stock_s * 1e3,
        "ms CPU",
        f">= {times:g} x less" if times else "",
        stock_s / ours_s >= times,
        note,
    )


def at_most(name: str, value: float, limit: float, unit: str, note: str = "") -> Figure:
    """State a value that has a limit."""
    return Figure(name, value, None, unit, f"<= {limit:g}", value <= limit, note)
