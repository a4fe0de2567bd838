"""Slurm jobs as owners: from the cgroups of their processes, and from a directory of job files.

The directory is the one that a prolog writes for dcgm-exporter: a file for each GPU, named by its
index (`0`) or, for a MIG instance, by index and GPU instance (`0.1`), with a job id on each line.
After the id a line may say `user=NAME` and `partition=NAME`; no cgroup tells a partition.
"""

from __future__ import annotations

import pwd
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from otel_gpu.attribution import Claims, Health, View
from otel_gpu.attribution.cgroups import Place
from otel_gpu.attribution.processes import Processes
from otel_gpu.model import Attributes, Device, Owner

NAME = "slurm"
MOST_BYTES = 64 << 10  # of a file; a job id a line
MOST_USERS = 1000
FILE = re.compile(r"(\d+)(?:\.(\d+))?")

Facts = Mapping[str, str]
"""What a job file says beside the id, by key."""


class Job(NamedTuple):
    """A job as a line of a file names it."""

    id: str
    facts: Facts


class SlurmSource:
    """Reads the directory, if there is one, each time, and the cgroups of the processes shown.

    `insists`: whether it was asked for, or only to be used where there is a job.
    """

    def __init__(
        self,
        directory: Path | None = None,
        processes: Processes | None = None,
        *,
        insists: bool = False,
        user_name: Callable[[int], str] | None = None,
    ) -> None:
        self.directory = directory
        self.insists = insists
        self._processes = processes or Processes()
        self._user_name = user_name or _user_name
        self._users: dict[int, str] = {}
        self._files: Mapping[str, tuple[Job, ...]] = {}
        self._seen = False
        self._health = Health(NAME, up=False, reason="unread", detail="not looked at yet")

    def claims(self, view: View) -> Claims:
        """Say which job was given which GPU, and which job each process on one is of."""
        self._read(view)
        facts = {job.id: job.facts for jobs in self._files.values() for job in jobs}
        owners = {}
        for name, jobs in self._files.items():
            for device in named(name, view.devices):
                owners[device.uuid] = tuple(owner(job.id, job.facts) for job in jobs)
        holders = {
            key: owner(place.job, {"user": self._user(place, key[1]), **facts.get(place.job, {})})
            for key, place in self._processes.places(view)
            if place.job
        }
        # The same job is one owner, whoever told of it.
        told = {holder.attributes[0][1]: holder for holder in holders.values()}
        owners = {
            uuid: tuple(told.get(one.attributes[0][1], one) for one in several)
            for uuid, several in owners.items()
        }
        self._seen = self._seen or bool(owners or holders)
        return Claims(owners, holders)

    def health(self) -> Health:
        """Say whether jobs can be seen."""
        return self._health

    def close(self) -> None:
        """Hold nothing."""

    def _read(self, view: View) -> None:
        dormant = not (self.insists or self.directory or self._seen)
        self._health = Health(NAME, up=True, dormant=dormant)
        if self.directory:
            try:
                self._files = dict(files(self.directory))
            except OSError as error:
                detail = f"{error.filename or self.directory}: {error.strerror}"
                self._health = Health(NAME, up=False, reason="unreadable", detail=detail)
        elif view.blind and not dormant:
            self._health = Health(NAME, up=False, reason="pid_namespace", detail=view.blind)

    def _user(self, place: Place, pid: int) -> str:
        number = self._processes.user(pid) if place.user is None else place.user
        if number is None:
            return ""
        if number not in self._users:
            if len(self._users) >= MOST_USERS:
                self._users.clear()
            self._users[number] = self._user_name(number)
        return self._users[number]


def files(directory: Path) -> Iterator[tuple[str, tuple[Job, ...]]]:
    """Read the job files by name; one that has just gone, or names no job, is left out.

    Raises OSError when the directory, or a file in it, cannot be read.
    """
    for path in sorted(directory.iterdir()):
        if FILE.fullmatch(path.name) and path.is_file():
            try:
                with path.open("rb") as file:
                    text = file.read(MOST_BYTES).decode("utf-8", "replace")
            except FileNotFoundError:
                continue
            if found := tuple(jobs(text)):
                yield path.name, found


def jobs(text: str) -> Iterator[Job]:
    """Read a job file's lines; the same job is named once."""
    found: dict[str, Facts] = {}
    for line in text.splitlines():
        words = line.split()
        if words:
            pairs = (word.partition("=") for word in words[1:])
            facts = {key: value for key, _, value in pairs if key and value}
            found.setdefault(words[0], facts)
    return (Job(job, facts) for job, facts in found.items())


def named(name: str, devices: Sequence[Device]) -> Sequence[Device]:
    """Give the GPU, or the instances, that a file's name means."""
    matched = FILE.fullmatch(name)
    if not matched:
        return ()
    index, instance = int(matched[1]), int(matched[2] or -1)
    return [
        device
        for device in devices
        if device.index == index
        and device.is_instance == (matched[2] is not None)
        and (matched[2] is None or device.gpu_instance == instance)
    ]


def owner(job: str, facts: Facts) -> Owner:
    """Describe a job; what is not known has no attribute."""
    attributes: Attributes = (("slurm.job.id", job),)
    for key in ("user", "partition"):
        if facts.get(key):
            attributes += ((f"slurm.{key}", facts[key]),)
    return Owner(attributes)


def _user_name(number: int) -> str:
    """Give a user's name; the number where the machine, or the container, does not know it."""
    try:
        return pwd.getpwuid(number).pw_name
    except (KeyError, OverflowError):
        return str(number)
