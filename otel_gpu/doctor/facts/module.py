"""The kernel module and what it drives: versions, parameters, and the GPUs on the PCI bus.

Sources: /proc/driver/nvidia (version, params, gpus), /sys/module/nvidia, /sys/bus/pci/devices. In a
container they are usually the host's; where a file is missing, the fact is unknown, not false.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from otel_gpu.doctor.facts.nodes import listed

PROC = "proc/driver/nvidia"
VERSION = re.compile(r"\b\d{3}\.\d+(?:\.\d+)?\b")
NVIDIA = "0x10de"
DISPLAY = "0x03"  # PCI class: VGA is 0x0300.., 3D controller 0x0302..


@dataclass(frozen=True, slots=True)
class PciGpu:
    """A GPU of NVIDIA's on the PCI bus, and the kernel driver that holds it ("" is none)."""

    address: str
    driver: str = ""


@dataclass(frozen=True, slots=True)
class Module:
    """`is_loaded` is None where /proc and /sys tell nothing; `gpus` and `pci` likewise."""

    is_loaded: bool | None = None
    version: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    gpus: tuple[str, ...] | None = None  # PCI addresses that the module drives
    pci: tuple[PciGpu, ...] | None = None
    is_wsl: bool = False  # Windows drives the GPU, and there is neither module nor device file


def look_at_module(root: Path) -> Module:
    """Read what the kernel says under a root."""
    version = module_version(root)
    loaded = bool(version) or (root / PROC).exists() or (root / "sys/module/nvidia").exists()
    tells = any((root / place).is_dir() for place in ("sys/module", "proc/driver"))
    return Module(
        is_loaded=loaded if loaded or tells else None,
        version=version,
        params=parameters(read(root / PROC / "params")),
        gpus=driven(root),
        pci=pci_gpus(root),
        is_wsl=(root / "dev/dxg").exists(),
    )


def module_version(root: Path) -> str:
    """Give the version of the loaded module; empty when unknown."""
    found = VERSION.search(read(root / PROC / "version"))
    return found[0] if found else read(root / "sys/module/nvidia/version").strip()


def parameters(text: str) -> dict[str, str]:
    """Read /proc/driver/nvidia/params: a name, a colon and a value on each line."""
    pairs = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    return {name.strip(): value.strip().strip('"') for name, value in pairs}


def driven(root: Path) -> tuple[str, ...] | None:
    """Give the addresses of the GPUs that the module drives; None when it does not say."""
    folder = root / PROC / "gpus"
    return tuple(sorted(path.name for path in listed(folder))) if folder.is_dir() else None


def pci_gpus(root: Path) -> tuple[PciGpu, ...] | None:
    """Give NVIDIA's GPUs on the PCI bus; None when the bus is not shown."""
    bus = root / "sys/bus/pci/devices"
    if not bus.is_dir():
        return None
    return tuple(PciGpu(path.name, driver_of(path)) for path in sorted(listed(bus)) if is_gpu(path))


def is_gpu(device: Path) -> bool:
    """Whether a PCI device is a display or 3D controller of NVIDIA's."""
    vendor, kind = read(device / "vendor").strip(), read(device / "class")
    return vendor == NVIDIA and kind.startswith(DISPLAY)


def driver_of(device: Path) -> str:
    """Name the kernel driver that holds a PCI device; empty when none does."""
    try:
        return (device / "driver").readlink().name
    except OSError:
        return ""


def read(path: Path) -> str:
    """Read a file; empty when that cannot be done."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
