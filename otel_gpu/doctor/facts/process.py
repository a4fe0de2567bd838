"""Who this process is: user, groups, capabilities, PID namespace.

Source: /proc/self/status, /proc/self/ns/pid (proc(5), pid_namespaces(7)).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from otel_gpu.doctor.facts.module import parameters, read
from otel_gpu.doctor.facts.nodes import Node

CAP_DAC_OVERRIDE, CAP_SYS_ADMIN = 1, 21  # linux/capability.h
FIRST_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO, the same in every kernel since 3.8
READ_WRITE = 0o6


@dataclass(frozen=True, slots=True)
class Namespace:
    """Whether this process sees the host's process ids: None is unknown. And what tells so."""

    is_host: bool | None = None
    is_sure: bool = False
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Process:
    """`capabilities` are the effective ones, as the bits of linux/capability.h."""

    uid: int = 0
    gids: tuple[int, ...] = (0,)
    capabilities: int = 0
    namespace: Namespace = Namespace()
    selinux: bool = False  # enforcing

    def has(self, capability: int) -> bool:
        """Whether it has a capability."""
        return bool(self.capabilities >> capability & 1)

    def passes(self, node: Node) -> bool:
        """Whether a file's mode and owner alone would let it read and write."""
        if self.has(CAP_DAC_OVERRIDE):
            return True
        shift = 6 if self.uid == node.uid else 3 if node.gid in self.gids else 0
        return node.mode >> shift & READ_WRITE == READ_WRITE


def look_at_process(root: Path) -> Process:
    """Read what /proc under a root says of the process that reads it."""
    status = parameters(read(root / "proc/self/status"))
    gids = (*effective(status, "Gid"), *map(int, status.get("Groups", "").split()))
    return Process(
        uid=next(iter(effective(status, "Uid")), os.geteuid()),
        gids=tuple(dict.fromkeys(gids or (os.getegid(),))),
        capabilities=int(status.get("CapEff", "0"), 16),
        namespace=namespace(root),
        selinux=read(root / "sys/fs/selinux/enforce").strip() == "1",
    )


def effective(status: Mapping[str, str], name: str) -> tuple[int, ...]:
    """Give the effective id of a line with real, effective, saved and file system ids."""
    return tuple(int(number) for number in status.get(name, "").split()[1:2])


def namespace(root: Path) -> Namespace:
    """Tell whether process ids are the host's, and by what."""
    try:
        link = str((root / "proc/self/ns/pid").readlink())
    except OSError:
        return by_names(root)
    number = link.removeprefix("pid:[").removesuffix("]")
    if link == FIRST_NAMESPACE:
        said = f"namespace {number} is the first that the kernel made"
        return Namespace(is_host=True, is_sure=True, evidence=said)
    said = f"namespace {number} is not the first that the kernel made"
    return Namespace(is_host=False, is_sure=True, evidence=said)


def by_names(root: Path) -> Namespace:
    """Guess by the names of the first two processes, where the namespace cannot be read."""
    first, second = (read(root / f"proc/{pid}/comm").strip() for pid in (1, 2))
    if not first:
        return Namespace(evidence="/proc tells neither the namespace nor who process 1 is")
    said = f"process 1 is {first}, process 2 is {second or 'not there'}"
    return Namespace(is_host=second == "kthreadd", evidence=said)
