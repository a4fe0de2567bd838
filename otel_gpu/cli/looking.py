"""The commands that look once and end."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from otel_gpu import __version__
from otel_gpu.cli.options import FAILED, Backend, ConfigFile, fail, settings
from otel_gpu.config import Settings, load
from otel_gpu.table import table


class OnceFormat(StrEnum):
    """How `once` prints."""

    TABLE = "table"
    JSON = "json"
    PROMETHEUS = "prometheus"
    OTLP = "otlp"


class ListFormat(StrEnum):
    """How `metrics` prints."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"


class ReportFormat(StrEnum):
    """How `doctor` prints."""

    TEXT = "text"
    JSON = "json"


def once(
    form: Annotated[OnceFormat, typer.Option("--format", help="How to print.")] = OnceFormat.TABLE,
    config: ConfigFile = None,
    backend: Backend = None,
) -> None:
    """Read every GPU once; exits with 0 when at least one answered."""
    from otel_gpu import single

    chosen = settings(config, backend).settings
    snapshot = single.sweep(chosen)
    if form is OnceFormat.JSON:
        print(single.as_json(snapshot))
    elif form is OnceFormat.PROMETHEUS:
        print(single.as_prometheus(chosen, snapshot), end="")
    elif form is OnceFormat.OTLP:
        print(single.as_otlp(chosen, snapshot))
    elif snapshot.devices:
        Console().print(table(snapshot))
    if not any(snapshot.up.values()):
        fail(snapshot.trouble or "no GPU answered; otel-gpu doctor says why")


def check(
    gpus: Annotated[
        int | None, typer.Option(min=1, help="How many GPUs there must be; fewer is a failure.")
    ] = None,
    config: ConfigFile = None,
    backend: Backend = None,
) -> None:
    """Say in one line how the GPUs are: 0 healthy, 1 degraded or failed, 2 unknown."""
    from otel_gpu.checking import look, verdict

    code, line = verdict(look(settings(config, backend).settings), gpus)
    print(line)
    raise typer.Exit(code)


def metrics(
    form: Annotated[ListFormat, typer.Option("--format", help="How to print.")] = ListFormat.TABLE,
    gpu: Annotated[
        bool, typer.Option("--gpu", help="Say what the GPUs of this machine offer.")
    ] = False,
    backend: Backend = None,
) -> None:
    """List every metric: name, kind, unit, source; with --gpu what this machine offers."""
    from otel_gpu import single
    from otel_gpu.render import reference

    snapshot = single.sweep(everything(backend)) if gpu else None
    if snapshot and snapshot.trouble:
        fail(snapshot.trouble)
    if form is ListFormat.JSON:
        print(json.dumps(reference.rows(snapshot), indent=2))
    elif form is ListFormat.MARKDOWN:
        print(reference.markdown(snapshot), end="")
    else:
        Console().print(reference.table(snapshot))


def record(
    file: Annotated[Path, typer.Argument(help="Where to write the recording (JSON).")],
    label: Annotated[str, typer.Option(help="What the machine was doing.")] = "",
    sweeps: Annotated[int, typer.Option(min=1, help="How often to ask everything.")] = 3,
    pause: Annotated[float, typer.Option(min=0.0, help="Seconds between two sweeps.")] = 1.0,
    backend: Backend = None,
) -> None:
    """Record this machine for replay with --backend recorded:FILE; identities are masked."""
    from otel_gpu import single

    count = single.capture(settings(None, backend).settings, file, label, sweeps, pause)
    print(f"recorded {count} GPUs and instances, masked, in {file}")


def doctor(
    form: Annotated[
        ReportFormat, typer.Option("--format", help="How to print.")
    ] = ReportFormat.TEXT,
    backend: Backend = None,
) -> None:
    """Say what stands between you and a reading; exits with 1 when it found a fault."""
    from otel_gpu.doctor import examine, lines

    report = examine(settings(None, backend).settings.backend)
    print(report.to_json() if form is ReportFormat.JSON else "\n".join(lines(report)))
    if not report.healthy:
        raise typer.Exit(FAILED)


def version() -> None:
    """Print the versions of the agent, of OpenTelemetry's SDK, of NVML and of the driver."""
    from opentelemetry.sdk.version import __version__ as sdk

    from otel_gpu import single

    snapshot = single.sweep(load(None, {}).settings)
    print(f"otel-gpu            {__version__}")
    print(f"opentelemetry-sdk   {sdk}")
    print(f"NVML                {snapshot.system.nvml_version or 'none'}")
    print(f"driver              {snapshot.system.driver_version or 'none'}")
    print(f"CUDA                {snapshot.system.cuda_version or 'none'}")
    if snapshot.trouble:
        print(snapshot.trouble, file=sys.stderr)


def everything(backend: str | None) -> Settings:
    """Give settings that read the whole catalog."""
    return settings(None, backend, {"metrics.profile": "full"}).settings
