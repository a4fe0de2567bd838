"""The Python distributions that bring a module named pynvml, and the versions of those that matter.

Three distributions on PyPI brought such a module; only nvidia-ml-py is NVIDIA's current one. What
is installed is read from its metadata: the module is not imported, here or anywhere in the agent.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from importlib.metadata import Distribution
from itertools import islice

OURS = "nvidia-ml-py"
RIVALS = ("pynvml", "nvidia-ml-py3")
TOLD = (OURS, "opentelemetry-sdk", "opentelemetry-exporter-otlp", "opentelemetry-proto")


@dataclass(frozen=True, slots=True)
class Package:
    """A distribution; `brings_module` is None where it has no list of its files."""

    name: str
    version: str
    brings_module: bool | None = None


@dataclass(frozen=True, slots=True)
class Packages:
    """Those of the three that are installed, where `import pynvml` leads, and versions by name.

    `module` and `home` are paths without links, empty where there is no such file or distribution.
    """

    bindings: tuple[Package, ...] = ()
    module: str = ""
    home: str = ""  # where nvidia-ml-py has that module
    versions: Mapping[str, str] = field(default_factory=dict)


def look_at_packages(path: Sequence[str]) -> Packages:
    """Read what is installed on a search path (such as `sys.path`)."""
    found = {name: dist for name in (OURS, *RIVALS) if (dist := installed(name, path))}
    spec = PathFinder.find_spec("pynvml", path)
    ours = found.get(OURS)
    return Packages(
        bindings=tuple(
            Package(name, dist.version, brings_module(dist)) for name, dist in found.items()
        ),
        module=os.path.realpath(spec.origin) if spec and spec.origin else "",
        home=os.path.realpath(str(ours.locate_file("pynvml.py"))) if ours else "",
        versions={name: dist.version for name in TOLD if (dist := installed(name, path))},
    )


def installed(name: str, path: Sequence[str]) -> Distribution | None:
    """Find a distribution by name."""
    return next(iter(Distribution.discover(name=name, path=list(path))), None)


def brings_module(dist: Distribution) -> bool | None:
    """Whether a distribution brings a module or package pynvml; None when its files are unknown."""
    if dist.files is None:
        return None
    return any(first in {"pynvml", "pynvml.py"} for first in firsts(dist))


def firsts(dist: Distribution) -> Iterator[str]:
    """Give the first part of the path of each of its files."""
    for file in dist.files or ():
        yield from islice(file.parts, 1)
