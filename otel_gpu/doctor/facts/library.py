"""Where NVIDIA's management library is, which of its files the loader takes, and what it says.

The order is the dynamic loader's (ld.so(8)): LD_LIBRARY_PATH, the cache that ldconfig writes, the
standard folders. Then come folders where drivers are known to be put and no loader looks.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from otel_gpu.doctor.facts.command import output
from otel_gpu.doctor.facts.elf import PASSED_OVER, fault

NAME = "libnvidia-ml.so.1"
VERSIONED = re.compile(r"libnvidia-ml\.so\.(\d+\.\d+(?:\.\d+)?)")
CACHED = re.compile(rf"\s{re.escape(NAME)} \([^)]*\) => (\S+)")
CACHE = "etc/ld.so.cache"
LDCONFIG_S = 1.0
LOADER_S = 2.0
TRIPLES = ("x86_64-linux-gnu", "aarch64-linux-gnu")
STANDARD = (
    "/lib64",
    "/usr/lib64",
    *(f"{folder}/{triple}" for folder in ("/lib", "/usr/lib") for triple in TRIPLES),
    "/lib",
    "/usr/lib",
)
ELSEWHERE = (
    "/usr/local/nvidia/lib64",  # mounted by GKE's device plugin, and by old NVIDIA images
    "/usr/local/nvidia/lib",
    "/usr/lib/wsl/lib",
    *(f"/usr/lib/{triple}/nvidia/current" for triple in TRIPLES),  # Debian's alternatives
    "/run/opengl-driver/lib",  # NixOS
    "/home/kubernetes/bin/nvidia/lib64",  # GKE's nodes
    "/opt/nvidia/lib64",
    "/run/nvidia/driver/usr/lib64",  # the driver container of the GPU Operator
    *(f"/run/nvidia/driver/usr/lib/{triple}" for triple in TRIPLES),
)
LOADER = f"""\
import ctypes
try:
    ctypes.CDLL({NAME!r})
except OSError as error:
    print("refused", error)
else:
    print("loaded", next(line.split(None, 5)[5] for line in open("/proc/self/maps")
                         if "libnvidia-ml" in line), end="")
"""


class Origin(StrEnum):
    """By which way a file was found."""

    VARIABLE = "LD_LIBRARY_PATH"
    CACHE = "the loader's cache"
    STANDARD = "a standard folder"
    ELSEWHERE = "a folder where the loader does not look"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that is, or leads to, the library. `version` is the driver's, from the real name."""

    path: str
    origin: Origin
    real: str = ""
    version: str = ""
    fault: str = ""

    @property
    def is_named(self) -> bool:
        """Whether it has the name that programs ask for; else it has only its version's."""
        return self.path.endswith(f"/{NAME}")

    @property
    def is_searched(self) -> bool:
        """Whether the loader comes by."""
        return self.origin is not Origin.ELSEWHERE

    def __str__(self) -> str:
        real = f" -> {self.real}" if self.real != self.path else ""
        return f"{self.path}{real}, in {self.origin}{f': {self.fault}' if self.fault else ''}"


@dataclass(frozen=True, slots=True)
class Attempt:
    """What the loader itself did: the file that it loaded, or what it said."""

    loaded: str = ""
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Library:
    """The candidates in the loader's order. `attempt` is None where the loader was not asked."""

    candidates: tuple[Candidate, ...] = ()
    attempt: Attempt | None = None
    variable: str = ""  # LD_LIBRARY_PATH

    @property
    def effective(self) -> Candidate | None:
        """The file that the loader takes, for better or worse."""
        return next((one for one in self.reachable if one.fault not in PASSED_OVER), None)

    @property
    def reachable(self) -> tuple[Candidate, ...]:
        """The files of the right name that the loader comes by."""
        return tuple(one for one in self.candidates if one.is_named and one.is_searched)

    @property
    def version(self) -> str:
        """The driver's version that belongs to the file that is loaded; empty when unknown."""
        if self.attempt and self.attempt.loaded:
            return version_of(self.attempt.loaded)
        return self.effective.version if self.effective else ""


def look_for_library(root: Path, environ: Mapping[str, str]) -> Library:
    """Find every candidate under a root, and ask the loader where the root is this machine's."""
    variable = environ.get("LD_LIBRARY_PATH", "")
    places = [
        *in_folders(root, filter(None, variable.split(":")), Origin.VARIABLE),
        *((path, Origin.CACHE) for path in cached(root, environ)),
        *in_folders(root, STANDARD, Origin.STANDARD),
        *in_folders(root, ELSEWHERE, Origin.ELSEWHERE),
    ]
    found: dict[str, Candidate] = {}
    for path, origin in places:
        # /lib is a link to /usr/lib today, and the cache names files that the folders have too.
        place = f"{path.parent.resolve()}/{path.name}"
        found.setdefault(place, candidate(root, path, origin))
    ours = root == Path("/")
    return Library(tuple(found.values()), ask_loader(environ) if ours else None, variable)


def in_folders(root: Path, folders: Iterable[str], origin: Origin) -> Iterator[tuple[Path, Origin]]:
    """Give the library's files in some folders: the name that is asked for first."""
    for folder in folders:
        here = root / folder.lstrip("/")
        files = sorted(here.glob("libnvidia-ml.so.*"), key=lambda file: (file.name != NAME, file))
        yield from ((file, origin) for file in files if file.name == NAME or version_of(file.name))


def cached(root: Path, environ: Mapping[str, str]) -> list[Path]:
    """Read the loader's cache with ldconfig; nothing where either is missing."""
    cache = root / CACHE
    command = next(filter(os.path.exists, ("/sbin/ldconfig", "/usr/sbin/ldconfig")), "ldconfig")
    text = output([command, "-C", str(cache), "-p"], environ, LDCONFIG_S) if cache.exists() else ""
    return [root / path.lstrip("/") for path in cached_paths(text or "")]


def cached_paths(text: str) -> list[str]:
    """Read the paths of the library out of what `ldconfig -p` prints."""
    return CACHED.findall(text)


def candidate(root: Path, path: Path, origin: Origin) -> Candidate:
    """Look at one file."""
    real = path.resolve()
    version = version_of(real.name) or version_of(path.name)
    return Candidate(shown(root, path), origin, shown(root, real), version, fault(path))


def shown(root: Path, path: Path) -> str:
    """Give a path as it is called inside the root."""
    home = root.resolve()
    for base in (root, home):
        if path.is_relative_to(base):
            return f"/{path.relative_to(base)}"
    return str(path)


def version_of(name: str) -> str:
    """Read the driver's version at the end of a file's name; empty when it has none."""
    found = VERSIONED.search(name)
    return found[1] if found else ""


def ask_loader(environ: Mapping[str, str]) -> Attempt | None:
    """Load the library in a process that then ends; nothing of NVML is called there."""
    text = output([sys.executable, "-I", "-S", "-c", LOADER], environ, LOADER_S)
    outcome, _, words = (text or "").strip().partition(" ")
    match outcome:
        case "loaded":
            return Attempt(loaded=words)
        case "refused":
            return Attempt(refused=words)
        case _:
            return None
