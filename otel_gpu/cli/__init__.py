"""The command line: words in, words out. It holds no logic that the library lacks."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from otel_gpu.cli import configuration, looking, running
from otel_gpu.cli.options import FAILED, USAGE, fail
from otel_gpu.model import ConfigError, OtelGpuError

app = typer.Typer(
    name="otel-gpu",
    help="OpenTelemetry-native collector agent for NVIDIA GPUs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def root(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Take the options of every command."""
    context.obj = debug
    # gRPC's core writes lines of its own beside the log, in no format of ours.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # Until a command turns the log on, what it has to say is in its own output.
    logging.getLogger("otel_gpu").addHandler(logging.NullHandler())


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


for _command in (
    running.run,
    running.quiesce,
    running.resume,
    running.demo,
    looking.once,
    looking.check,
    looking.metrics,
    looking.record,
    looking.doctor,
    render,
    looking.version,
):
    app.command()(_command)
app.add_typer(configuration.app, name="config")


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
