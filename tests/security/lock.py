"""The lock file: what is pinned in it, and what is wrong with that."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements.lock"
PROJECT = ROOT / "pyproject.toml"

_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class Pin:
    """A line of the lock file: a distribution of exactly one version, on some platforms or all."""

    name: str
    version: Version
    marker: str
    hashes: int


def pins(text: str) -> list[Pin]:
    """Read a lock file. Raises ValueError: a line in it is something else than a pin."""
    whole = re.sub(r"\\\n", " ", text)
    return [_pin(line) for line in whole.splitlines() if line.strip() and not line.startswith("#")]


def _pin(line: str) -> Pin:
    words = line.split(" --hash=", maxsplit=1)[0].strip()
    hashes = _HASH.findall(line)
    try:
        read = Requirement(words)
    except InvalidRequirement as error:
        raise ValueError(f"{words!r} is not a pin: {error}") from error
    exact = re.fullmatch(r"==([^*,]+)", str(read.specifier))
    if exact is None or read.url or line.count("--hash=") != len(hashes):
        raise ValueError(f"{words!r} is not pinned to one version by sha256")
    name = canonicalize_name(read.name)
    return Pin(name, Version(exact[1]), str(read.marker or ""), len(hashes))


def direct(project: Path = PROJECT) -> list[Requirement]:
    """Give what pyproject.toml asks for."""
    asked = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["dependencies"]
    return [Requirement(each) for each in asked]


Needs = Callable[[Pin], Iterable[str] | None]
"""What a pinned distribution itself requires; None where that is not known."""


def faults(found: Iterable[Pin], asked: Iterable[Requirement], needs: Needs) -> Iterator[str]:
    """Say what does not agree: with what was asked for, and with what each pin needs itself."""
    pinned = {pin.name: pin for pin in found}
    yield from (f"{pin.name} has no hash" for pin in pinned.values() if not pin.hashes)
    reached: set[str] = set()
    waiting = [("pyproject.toml", each) for each in asked]
    while waiting:
        who, requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        pin = pinned.get(name)
        if pin is None:
            yield f"{name}, which {who} needs, is not pinned"
        elif not requirement.specifier.contains(pin.version, prereleases=True):
            yield f"{name} {pin.version} is not {requirement.specifier}, as {who} needs"
        elif name not in reached:
            reached.add(name)
            waiting += [(name, each) for each in _wanted(needs(pin), requirement.extras)]
    idle = [pin.name for pin in pinned.values() if pin.name not in reached and not pin.marker]
    if not any(needs(pin) is None for pin in pinned.values()):
        yield from (f"{name} is pinned, and nothing needs it" for name in idle)


def _wanted(needs: Iterable[str] | None, extras: Iterable[str]) -> Iterator[Requirement]:
    """Choose what counts here: on this platform, with these extras."""
    for text in needs or ():
        read = Requirement(text)
        environments: list[Mapping[str, str]] = [{"extra": each} for each in ("", *extras)]
        if read.marker is None or any(read.marker.evaluate(dict(one)) for one in environments):
            yield read
