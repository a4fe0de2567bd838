"""`otel-gpu config`: look at the configuration."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from otel_gpu.cli.options import USAGE
from otel_gpu.config import check, load, schema, show

app = typer.Typer(help="Look at the configuration.", no_args_is_help=True)

File = Annotated[Path | None, typer.Argument(help="Configuration file (YAML).")]


@app.command("check")
def config_check(file: File = None) -> None:
    """Check a configuration: every fault at once, exit 2 if there is any."""
    faults = check(file, os.environ)
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        raise typer.Exit(USAGE)
    print(f"{file or 'the default configuration'} is sound")


@app.command("show")
def config_show(file: File = None) -> None:
    """Print the effective configuration, and who gave each value; secrets are masked."""
    print(show(load(file, os.environ)), end="")


@app.command("schema")
def config_schema() -> None:
    """Print the JSON schema of the configuration."""
    print(json.dumps(schema(), indent=2))
