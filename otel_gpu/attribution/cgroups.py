"""The text of /proc/PID/cgroup: in which pod, container and job a process runs. Pure.

The formats are the kernel's (cgroups(7), version 1 and 2) and, for the names of the groups, those
of the kubelet with the cgroupfs and the systemd driver, containerd, CRI-O, Docker, Podman, Amazon
ECS and slurmstepd. A path may begin with `/..` where the reader is in a cgroup namespace.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_UUID = r"[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}"
_POD = re.compile(rf"(?:^|[/-])pod({_UUID}|[0-9a-f]{{32}})(?=[./:]|$)")  # 32: of a static pod
_CONTAINER = re.compile(r"(?:^|[-:])([0-9a-f]{64}|[0-9a-f]{32}-\d{6,})(?:\.scope)?$")
_JOB = re.compile(
    r"(?:/slurm[^/]*/uid_(?P<user>\d+)|slurmstepd\.scope|/\.\.)/job_(?P<job>\d+)(?=/|$)"
)
_MONITOR = re.compile(r"-?conmon-")  # watches a container from outside it


class Place(NamedTuple):
    """Where a process runs; "" and None stand for what the path does not tell."""

    pod: str = ""  # its UID
    container: str = ""  # its id: the innermost one's
    job: str = ""  # of Slurm
    user: int | None = None  # whose the job is


def place(text: str) -> Place:
    """Read the file's text; what is in no pod, container or job is an empty Place."""
    found = Place()
    for line in text.splitlines():
        path = line.split(":", 2)[-1] if line.count(":") >= 2 else ""
        if path.startswith("/"):
            found = _united(found, _of(path))
    return found


def _of(path: str) -> Place:
    pod = _POD.search(path)
    job = _JOB.search(path)
    user = job and job["user"]
    return Place(
        pod[1].replace("_", "-") if pod else "",
        _container(path),
        job["job"] if job else "",
        int(user) if user else None,
    )


def _container(path: str) -> str:
    for part in reversed(path.split("/")):
        if _MONITOR.search(part):
            return ""
        if found := _CONTAINER.search(part):
            return found[1]
    return ""


def _united(one: Place, other: Place) -> Place:
    """Put together what two lines tell; version 1 has one for each controller, some at the root."""
    return Place(
        one.pod or other.pod,
        one.container or other.container,
        one.job or other.job,
        other.user if one.user is None else one.user,
    )
