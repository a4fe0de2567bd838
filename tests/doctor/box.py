"""A machine as files in a folder: what a rule needs to see, and no more."""

from __future__ import annotations

import sys
from pathlib import Path

HEADER = Path(sys.executable).read_bytes()[:20]
FOREIGN = HEADER[:18] + b"\xf7\x00"  # e_machine of BPF, which no interpreter is for

OPEN_MODULE = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build  (dvs)\n"
    "GCC version:  gcc version 15.3.0 (GCC)\n"
)
CLOSED_MODULE = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Tue Jan 1 00:00:00 UTC\n"
)
PARAMS = """\
ResmanDebugLevel: 4294967295
ModifyDeviceFiles: 1
DeviceFileUID: 0
DeviceFileGID: 0
DeviceFileMode: 438
RmProfilingAdminOnly: 0
RegistryDwords: ""
"""


class Box:
    """Writes files under a root as a driver, a kernel or a container runtime would."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, content: str | bytes = "") -> Path:
        """Write any file."""
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def link(self, path: str, target: str) -> None:
        """Make a link, to a name in the same folder or to a path outside of the box."""
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(target)

    def library(
        self, folder: str = "/usr/lib64", version: str = "580.159.04", content: bytes = HEADER
    ) -> None:
        """Put the library there as the driver's installer does: a file and a link."""
        self.write(f"{folder}/libnvidia-ml.so.{version}", content)
        self.link(f"{folder}/libnvidia-ml.so.1", f"libnvidia-ml.so.{version}")

    def module(self, version: str = "580.159.04", text: str = OPEN_MODULE) -> None:
        """Load the kernel module."""
        self.write("/proc/driver/nvidia/version", text.format(version=version))
        self.write("/proc/driver/nvidia/params", PARAMS)
        self.write("/sys/module/nvidia/version", f"{version}\n")
        (self.root / "proc/driver/nvidia/gpus").mkdir()

    def kernel(self) -> None:
        """Show what a kernel without the module shows."""
        for folder in ("sys/module", "proc/driver", "sys/bus/pci/devices", "dev"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)

    def gpu(self, minor: int, driver: str = "nvidia") -> None:
        """Put a GPU on the bus, and under the module if that drives it."""
        address = f"0000:0{minor}:00.0"
        self.write(f"/sys/bus/pci/devices/{address}/vendor", "0x10de\n")
        self.write(f"/sys/bus/pci/devices/{address}/class", "0x030200\n")
        if driver:
            self.link(f"/sys/bus/pci/devices/{address}/driver", f"../../../bus/drivers/{driver}")
        if driver == "nvidia":
            self.write(f"/proc/driver/nvidia/gpus/{address}/information", f"Device Minor: {minor}")

    def device(self, name: str) -> None:
        """Put a device file there that anyone may open."""
        self.link(f"/dev/{name}", "/dev/null")

    def process(self, uid: int = 0, capabilities: str = "000001ffffffffff") -> None:
        """Say who this process is."""
        status = (
            f"Name:\tpython\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nGid:\t{uid}\t{uid}\t{uid}\t{uid}\n"
        )
        self.write("/proc/self/status", f"{status}Groups:\t27 {uid}\nCapEff:\t{capabilities}\n")

    def namespace(self, number: int) -> None:
        """Put this process into a PID namespace."""
        self.link("/proc/self/ns/pid", f"pid:[{number}]")
