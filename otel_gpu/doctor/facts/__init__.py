"""What was seen of a machine, gathered once: the rules judge these values and look at nothing.

Each part has a file: its dataclass, and beside it the function that reads it from the file system
under a root, so that a test can bring a machine of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from otel_gpu.doctor.facts.library import Library, look_for_library
from otel_gpu.doctor.facts.module import Module, look_at_module
from otel_gpu.doctor.facts.nodes import Nodes, look_at_nodes
from otel_gpu.doctor.facts.opening import Opening
from otel_gpu.doctor.facts.packages import Packages, look_at_packages
from otel_gpu.doctor.facts.process import Process, look_at_process

TELLING = ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "CUDA_VISIBLE_DEVICES")
"""Environment variables that decide which GPUs are seen; LD_LIBRARY_PATH stands at the library."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that the rules judge. `environment` has only the variables that tell something."""

    backend: str = "nvml"
    library: Library = field(default_factory=Library)
    nodes: Nodes = field(default_factory=Nodes)
    module: Module = field(default_factory=Module)
    process: Process = field(default_factory=Process)
    packages: Packages = field(default_factory=Packages)
    environment: Mapping[str, str] = field(default_factory=dict)
    opening: Opening = field(default_factory=Opening)

    @property
    def is_real(self) -> bool:
        """Whether it is about the driver of this machine."""
        return self.backend == "nvml"

    @property
    def is_open(self) -> bool:
        """Whether the driver was opened, so that nothing on the way to it can be broken."""
        return self.opening.system is not None

    @property
    def has_devices(self) -> bool:
        """Whether GPUs are reached through device files; WSL has another way."""
        return self.is_real and not self.module.is_wsl


def gather(backend: str, root: Path, environ: Mapping[str, str]) -> Facts:
    """Read all that can be known without touching the driver, in a few seconds at most."""
    return Facts(
        backend=backend,
        library=look_for_library(root, environ),
        nodes=look_at_nodes(root),
        module=look_at_module(root),
        process=look_at_process(root),
        packages=look_at_packages(sys.path),
        environment={name: environ[name] for name in TELLING if name in environ},
    )
