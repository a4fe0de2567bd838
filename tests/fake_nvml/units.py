"""The units in which NVML gives its numbers, and what makes UCUM units of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Unit:
    """A unit of NVML's: the UCUM unit and the factor that lead to it, and a largest raw number.

    A count may be in any unit in braces.
    """

    ucum: str
    factor: Fraction = Fraction(1)
    most: int = 2**31


UNITS: Mapping[str, Unit] = {
    "%": Unit("1", Fraction(1, 100), 99),
    "mW": Unit("W", Fraction(1, 1000), 20_000_000),
    "mJ": Unit("J", Fraction(1, 1000), 2**50),
    "MHz": Unit("Hz", Fraction(10**6), 99_999),
    "degC": Unit("Cel", most=149),
    "rpm": Unit("rpm", most=99_999),
    "B": Unit("By", most=2**49),
    "KiB": Unit("By", Fraction(2**10), 2**39),
    "KB/s": Unit("By/s", Fraction(1000)),
    "MiB/s": Unit("By/s", Fraction(2**20), 2**22),
    "ns": Unit("s", Fraction(1, 10**9), 2**50),
    "us": Unit("s", Fraction(1, 10**6)),
    "fps": Unit("{frame}/s"),
    "pstate": Unit("{pstate}", most=15),
    "count": Unit("{}"),
    "rare": Unit("{}"),  # a count that is 0 in most rounds
    "flag": Unit("1", most=1),
}

INTEGRATED = {"%": "s", "MiB/s": "By"}
"""Units of GPM's means, and those of their integrals over time."""
