"""Whether a file is a shared object that this very interpreter could load.

Source: the ELF header (System V ABI, gABI chapter 4): `e_ident` with class and byte order, then
`e_type` and `e_machine`, 20 bytes together.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

MAGIC = b"\x7fELF"


class Kind(NamedTuple):
    """What must be the same in an interpreter and in all that it loads."""

    word: int  # 1: 32 bits, 2: 64 bits
    order: int  # 1: little endian, 2: big endian
    machine: int  # 62: x86-64, 183: AArch64


def kind(path: Path) -> Kind | None:
    """Read the header of a file; None when it is not ELF. Raises OSError."""
    with path.open("rb") as file:
        head = file.read(20)
    if len(head) < 20 or not head.startswith(MAGIC):
        return None
    order = head[5]
    return Kind(head[4], order, int.from_bytes(head[18:20], "big" if order == 2 else "little"))


def fault(path: Path) -> str:
    """Say why the loader cannot take a file; empty when nothing is wrong with its header."""
    try:
        found = kind(path)
        size = path.stat().st_size
    except FileNotFoundError:
        return DANGLING
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if found is None:
        return EMPTY if size == 0 else FOREIGN
    return "" if found == kind(Path(sys.executable)) else OTHER_MACHINE


DANGLING = "a link that leads nowhere"
EMPTY = "an empty file"
FOREIGN = "not a shared library"
OTHER_MACHINE = "for another processor"
PASSED_OVER = frozenset({DANGLING, OTHER_MACHINE})
"""Faults at which the loader goes on to the next folder; at the others it gives up."""
