"""What several commands take, and how each of them loads its settings and fails."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from otel_gpu.config import Loaded, load

FAILED, USAGE, NO_GPU = 1, 2, 3

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", envvar="OTEL_GPU_CONFIG", help="Configuration file (YAML)."),
]
Backend = Annotated[
    str | None, typer.Option(help="nvml (default), simulated[:SPEC] or recorded:FILE.")
]


def settings(
    config: Path | None, backend: str | None, flags: Mapping[str, object] | None = None
) -> Loaded:
    """Load the configuration with what the command line says."""
    given = dict(flags or {})
    if backend:
        given["backend"] = backend
    return load(config, os.environ, given)


def fail(text: str, code: int = FAILED) -> NoReturn:
    """Say in one line what is wrong, and exit."""
    print(f"otel-gpu: {text}", file=sys.stderr)
    raise typer.Exit(code)
