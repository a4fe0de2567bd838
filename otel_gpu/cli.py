"""The command line: words in, words out. It holds no logic that the library lacks."""

from __future__ import annotations

import gc
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live

from otel_gpu import __version__
from otel_gpu.agent import Agent
from otel_gpu.change import Outcome
from otel_gpu.config import Loaded, Settings, check, load, schema, show
from otel_gpu.control import Control, ask, place
from otel_gpu.logs import configure
from otel_gpu.model import ConfigError, OtelGpuError
from otel_gpu.reloading import Changes
from otel_gpu.table import table

FAILED, USAGE, NO_GPU = 1, 2, 3
ORDER_S = 45.0  # for the running agent to carry out an order
LOOK_S = 1.0  # between two looks at the configuration file
FIRST_SWEEP_S = 40.0  # without persistence a GPU takes seconds to enumerate

app = typer.Typer(
    name="otel-gpu",
    help="OpenTelemetry-native collector agent for NVIDIA GPUs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
config_app = typer.Typer(help="Look at the configuration.", no_args_is_help=True)
app.add_typer(config_app, name="config")

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", envvar="OTEL_GPU_CONFIG", help="Configuration file (YAML)."),
]
Backend = Annotated[
    str | None, typer.Option(help="nvml (default), simulated[:SPEC] or recorded:FILE.")
]
ControlSocket = Annotated[
    Path | None, typer.Option(help="The agent's control socket, where it is not in its own place.")
]
File = Annotated[Path | None, typer.Argument(help="Configuration file (YAML).")]


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


@app.callback()
def root(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Take the options of every command."""
    context.obj = debug
    # Until a command turns the log on, what it has to say is in its own output.
    logging.getLogger("otel_gpu").addHandler(logging.NullHandler())


@app.command()
def run(
    config: ConfigFile = None,
    backend: Backend = None,
    require_gpu: Annotated[
        bool, typer.Option("--require-gpu", help="Exit with 3 when there is no driver or no GPU.")
    ] = False,
) -> None:
    """Run the agent until SIGTERM or SIGINT; SIGHUP, or a changed file, has it configured anew."""
    # gRPC's core writes lines of its own beside the log, in no format of ours.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    asked = threading.Event()
    signal.signal(signal.SIGHUP, lambda *_: asked.set())
    changes = Changes(config)
    loaded = settings(config, backend)
    write_log(loaded.settings)
    agent = Agent(told(loaded), os.environ)
    with stopping() as stop, running(agent), controlled(agent):
        if require_gpu:
            agent.wait_for_sweep(FIRST_SWEEP_S)
            snapshot = agent.snapshot()
            if not any(snapshot.up.values()):
                fail(snapshot.trouble or "the driver is open and has no GPU", NO_GPU)
        while not stop.wait(LOOK_S):
            if changes.seen() or asked.is_set():
                asked.clear()
                if agent.reload(lambda: told(settings(config, backend))) is Outcome.APPLIED:
                    write_log(agent.settings)


@app.command()
def quiesce(socket: ControlSocket = None) -> None:
    """Have the running agent let every GPU go: before a driver upgrade, a reset, a MIG change."""
    command("quiesce", socket)


@app.command()
def resume(socket: ControlSocket = None) -> None:
    """Have the running agent take the GPUs back."""
    command("resume", socket)


@app.command()
def demo(
    seconds: Annotated[
        float | None, typer.Option(help="End after so many seconds; else run until ^C.")
    ] = None,
    address: Annotated[str, typer.Option(help="Where to serve.")] = "127.0.0.1:9400",
) -> None:
    """Run the agent here: on the real GPUs if NVML answers, else on a simulated box of eight."""
    configure("warning", "text")
    console = Console()
    flags = {"pipeline": [{"prometheus": {"address": address}}]}
    agent = Agent(load(None, {}, flags).settings, os.environ)
    with stopping() as stop:
        trouble = first_trouble(agent)
        if trouble:
            console.print(f"no GPU here ({trouble}): showing a simulated box", soft_wrap=True)
            simulated = load(None, {}, {**flags, "backend": "simulated"}).settings
            agent = Agent(simulated, os.environ)
        else:
            console.print("showing the GPUs of this machine")
        with running(agent):
            agent.wait_for_sweep(FIRST_SWEEP_S)
            console.print(f"serving http://{address}/metrics until ^C\n")
            watch(agent, console, stop, seconds)


@app.command()
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


@app.command()
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


@app.command()
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


@app.command()
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


@app.command()
def render(
    only_check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit with 1 where a file differs.")
    ] = False,
) -> None:
    """Rewrite everything that is made from the catalog and the settings."""
    from otel_gpu.doctor import markdown
    from otel_gpu.render import differing, outputs, rewrite

    made = outputs(typer.main.get_command(app), markdown())
    changed = (differing if only_check else rewrite)(Path.cwd(), made)
    for path in changed:
        print(f"{path} {'differs' if only_check else 'rewritten'}")
    if only_check and changed:
        fail("run `make render`, look at the difference and commit it")


@app.command()
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


@config_app.command("check")
def config_check(file: File = None) -> None:
    """Check a configuration: every fault at once, exit 2 if there is any."""
    faults = check(file, os.environ)
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        raise typer.Exit(USAGE)
    print(f"{file or 'the default configuration'} is sound")


@config_app.command("show")
def config_show(file: File = None) -> None:
    """Print the effective configuration, and who gave each value; secrets are masked."""
    print(show(load(file, os.environ)), end="")


@config_app.command("schema")
def config_schema() -> None:
    """Print the JSON schema of the configuration."""
    print(json.dumps(schema(), indent=2))


def write_log(loaded: Settings) -> None:
    """Have the log written as the configuration says."""
    configure(loaded.telemetry.log_level, loaded.telemetry.log_format)


def told(loaded: Loaded) -> Settings:
    """Give the settings, and log what is odd about them."""
    for warning in loaded.warnings:
        logging.getLogger("otel_gpu").warning("%s", warning)
    return loaded.settings


def settings(
    config: Path | None, backend: str | None, flags: Mapping[str, object] | None = None
) -> Loaded:
    """Load the configuration with what the command line says."""
    given = dict(flags or {})
    if backend:
        given["backend"] = backend
    return load(config, os.environ, given)


def everything(backend: str | None) -> Settings:
    """Give settings that read the whole catalog."""
    return settings(None, backend, {"metrics.profile": "full"}).settings


def first_trouble(agent: Agent) -> str:
    """Try the driver once, and say why it cannot be used, or that it has no GPU."""
    try:
        system = agent.driver.system(time.monotonic())
        if system is None:
            return str(agent.driver.trouble)
        return "" if system.devices else "the driver has none"
    finally:
        agent.driver.close()


def watch(agent: Agent, console: Console, stop: threading.Event, seconds: float | None) -> None:
    """Show the table again every second, until stopped or for so many seconds."""
    end_s = float("inf") if seconds is None else time.monotonic() + seconds
    with Live(table(agent.snapshot()), console=console, auto_refresh=False) as live:
        while time.monotonic() < end_s and not stop.wait(1.0):
            live.update(table(agent.snapshot()), refresh=console.is_terminal)
        live.update(table(agent.snapshot()), refresh=True)


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """Turn SIGTERM and SIGINT into an event."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    yield stop


@contextmanager
def controlled(agent: Agent) -> Iterator[None]:
    """Let the agent be told over its control socket what to do."""
    control = Control(place(os.environ), {"quiesce": agent.quiesce, "resume": agent.resume})
    try:
        yield
    finally:
        control.close()


def command(order: str, path: Path | None) -> None:
    """Give an order to the running agent; exits with 1 when it could not be carried out."""
    reply = ask(path or place(os.environ), order, ORDER_S)
    if not reply.ok:
        fail(reply.text)
    print(reply.text)


@contextmanager
def running(agent: Agent) -> Iterator[None]:
    """Start an agent, and stop it whatever happens."""
    agent.start()
    # What was loaded until now stays. A full collection would walk through all of it, for 50 ms,
    # and there is one every few seconds.
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        agent.stop()


def fail(text: str, code: int = FAILED) -> None:
    """Say in one line what is wrong, and exit."""
    print(f"otel-gpu: {text}", file=sys.stderr)
    raise typer.Exit(code)


def main() -> None:
    """Run the command line; an error is one line, unless --debug was given."""
    try:
        app()
    except OtelGpuError as error:
        if "--debug" in sys.argv:
            raise
        print(error, file=sys.stderr)
        sys.exit(USAGE if isinstance(error, ConfigError) else FAILED)
    except Exception as error:  # a fault of ours is one line too, as any error
        if "--debug" in sys.argv:
            raise
        kind = type(error).__name__
        print(f"otel-gpu: unexpected {kind}: {error}; --debug shows where", file=sys.stderr)
        sys.exit(FAILED)
