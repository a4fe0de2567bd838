"""Figures as a table, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from bench.figure import Figure


def show(title: str, figures: Iterable[Figure]) -> None:
    """Print a table."""
    print(f"\n{title}")
    print(f"{'':28} {'ours':>9} {'baseline':>9} {'':7} {'ratio':>7}  {'must be':15}")
    for one in figures:
        baseline = "" if one.baseline is None else f"{one.baseline:.2f}"
        ratio = "" if one.ratio is None else f"{one.ratio:.1f} x"
        verdict = ("yes" if one.holds else "NO") if one.bound else ""
        print(
            f"{one.name:28} {one.ours:9.2f} {baseline:>9} {one.unit:7} {ratio:>7}  "
            f"{one.bound:15} {verdict:3}  {one.note}"
        )


def write(path: Path, figures: Iterable[Figure]) -> None:
    """Write the same as JSON."""
    rows = [{**asdict(one), "ratio": one.ratio} for one in figures]
    path.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
