"""docs/reliability.md names a test for each fault, and each test of a fault is named there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`(tests/[\w/.]+\.py)::(test_\w+)`", TEXT))


def defined_in(file: Path) -> set[tuple[str, str]]:
    found = re.findall(r"^ *def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {(str(file.relative_to(ROOT)), name) for name in found}


def test_every_test_that_is_named_is_there() -> None:
    there = {one for file in {file for file, _ in NAMED} for one in defined_in(ROOT / file)}
    assert NAMED
    assert not NAMED - there


def test_every_test_of_a_fault_is_named() -> None:
    here = [file for file in Path(__file__).parent.glob("test_*.py") if file != Path(__file__)]
    assert not {one for file in here for one in defined_in(file)} - NAMED
