"""The device files: whether they are there, are devices, and are open to this process.

They are not opened for that. Opening one wakes the GPU, and hangs when the driver does. access(2)
asks the same two doors, the file's mode and the cgroup's device list, and the errors tell which of
them is shut: EACCES is the mode (or a security module), EPERM is the cgroup.
"""

from __future__ import annotations

import ctypes
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from errno import ENOENT, errorcode
from pathlib import Path

CONTROL = "nvidiactl"
GPU = re.compile(r"nvidia\d+")
AT_FDCWD, AT_EACCESS = -100, 0x200  # fcntl.h
READ_WRITE = os.R_OK | os.W_OK


@dataclass(frozen=True, slots=True)
class Node:
    """A device file: `errno` is what opening it for reading and writing would say, 0 if nothing."""

    name: str
    errno: int = 0
    is_device: bool = True
    mode: int = 0o666
    uid: int = 0
    gid: int = 0

    @property
    def is_there(self) -> bool:
        """Whether there is anything of this name."""
        return self.errno != ENOENT

    @property
    def is_open(self) -> bool:
        """Whether this process may use it."""
        return self.is_device and not self.errno

    def __str__(self) -> str:
        kind = "" if self.is_device else ", not a character device"
        says = f", opening it says {errorcode.get(self.errno, self.errno)}" if self.errno else ""
        return f"/dev/{self.name} has mode {self.mode:04o}, owner {self.uid}:{self.gid}{kind}{says}"


ABSENT = Node(CONTROL, ENOENT, is_device=False, mode=0)


@dataclass(frozen=True, slots=True)
class Nodes:
    """/dev/nvidiactl, through which all goes, and /dev/nvidiaN, one for each GPU."""

    control: Node = ABSENT
    gpus: tuple[Node, ...] = ()

    @property
    def open_gpus(self) -> tuple[Node, ...]:
        """The GPUs that this process may use."""
        return tuple(node for node in self.gpus if node.is_open)

    @property
    def deciding(self) -> tuple[Node, ...]:
        """The files that alone keep every reading away when they are shut."""
        return (self.control, *(() if self.open_gpus else self.gpus))


def look_at_nodes(root: Path) -> Nodes:
    """Look at the device files under a root."""
    folder = root / "dev"
    names = [path.name for path in listed(folder) if GPU.fullmatch(path.name)]
    names.sort(key=lambda name: int(name.removeprefix("nvidia")))
    return Nodes(node(folder / CONTROL), tuple(node(folder / name) for name in names))


def listed(folder: Path) -> Iterator[Path]:
    """Give what is in a folder; nothing when it is not there or shut."""
    try:
        yield from folder.iterdir()
    except OSError:
        return


def node(path: Path) -> Node:
    """Look at one file."""
    try:
        found = path.stat()
    except OSError as error:
        return Node(path.name, error.errno or ENOENT, is_device=False, mode=0)
    mode, is_device = stat.S_IMODE(found.st_mode), stat.S_ISCHR(found.st_mode)
    return Node(path.name, refusal(path), is_device, mode, found.st_uid, found.st_gid)


def refusal(path: Path) -> int:
    """Give the errno with which this process may not read and write a file; 0 when it may."""
    libc = ctypes.CDLL(None, use_errno=True)  # os.access keeps the errno to itself
    if not libc.faccessat(AT_FDCWD, os.fsencode(path), READ_WRITE, AT_EACCESS):
        return 0
    return ctypes.get_errno()
