"""Whether the GPUs sleep: to open one would wake it (runtime power management, laptops)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

NVIDIA = "0x10de"
DISPLAY = "0x03"  # the class of VGA and 3D controllers (PCI code and ID assignment)


def asleep(devices: Path = Path("/sys/bus/pci/devices")) -> bool:
    """Whether this machine has NVIDIA GPUs of which each is suspended."""
    states = set(_states(devices))
    return states == {"suspended"}


def _states(devices: Path) -> Iterator[str]:
    try:
        found = sorted(devices.iterdir())
    except OSError:
        return
    for device in found:
        if _word(device / "vendor") == NVIDIA and _word(device / "class").startswith(DISPLAY):
            yield _word(device / "power" / "runtime_status")


def _word(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeError):
        return ""
