"""The commands that run the agent, and those that tell a running one what to do."""

from __future__ import annotations

import gc
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live

from otel_gpu.agent import Agent
from otel_gpu.change import Outcome
from otel_gpu.cli.options import NO_GPU, Backend, ConfigFile, fail, settings
from otel_gpu.config import Loaded, Settings, load
from otel_gpu.control import Control, ask, place
from otel_gpu.logs import configure
from otel_gpu.reloading import Changes
from otel_gpu.table import table

ORDER_S = 45.0  # for the running agent to carry out an order
LOOK_S = 1.0  # between two looks at the configuration file
FIRST_SWEEP_S = 40.0  # without persistence a GPU takes seconds to enumerate

ControlSocket = Annotated[
    Path | None, typer.Option(help="The agent's control socket, where it is not in its own place.")
]


def run(
    config: ConfigFile = None,
    backend: Backend = None,
    require_gpu: Annotated[
        bool, typer.Option("--require-gpu", help="Exit with 3 when there is no driver or no GPU.")
    ] = False,
) -> None:
    """Run the agent until SIGTERM or SIGINT; SIGHUP, or a changed file, has it configured anew."""
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


def quiesce(socket: ControlSocket = None) -> None:
    """Have the running agent let every GPU go: before a driver upgrade, a reset, a MIG change."""
    command("quiesce", socket)


def resume(socket: ControlSocket = None) -> None:
    """Have the running agent take the GPUs back."""
    command("resume", socket)


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


def write_log(loaded: Settings) -> None:
    """Have the log written as the configuration says."""
    configure(loaded.telemetry.log_level, loaded.telemetry.log_format)


def told(loaded: Loaded) -> Settings:
    """Give the settings, and log what is odd about them."""
    for warning in loaded.warnings:
        logging.getLogger("otel_gpu").warning("%s", warning)
    return loaded.settings


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
