"""One run: the agent as a process, everything around it, and what came of it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figure import Figure
from bench.soak import verdict
from bench.soak.box import BOX, Stormy, struck
from bench.soak.changes import Configuration, Owners
from bench.soak.clients import Probes, Scraper, Strays, get
from bench.soak.course import Course
from bench.soak.proc import Sample, children
from bench.soak.receivers import WEATHER, Grpc, Http, Receiver, follow
from bench.soak.watch import Watch
from bench.soak.windows import Storm

ROOT = Path(__file__).parents[2]
READY_S, GONE_S = 40.0, 10.0
PUSH_S = 5
QUEUE = 1 << 20  # bytes, so that an outage of minutes would fill it
LOG, STRUCK, COUNTS = "agent.log", "struck", "counts"


@dataclass(frozen=True)
class Outcome:
    """What a run showed. `status` is the agent's own, at the end."""

    figures: Sequence[Figure]
    failures: Sequence[str]
    faults: Mapping[str, int]
    counts: Mapping[str, int]
    status: Mapping[str, Any]
    agent: Sequence[Sample]
    workers: Sequence[Sample]


def run(
    folder: Path, seconds: float, seed: int, *, reload: bool = False, trace: Path | None = None
) -> Outcome:
    """Let an agent live through so many seconds, and judge it."""
    course = Course(seconds, seed)
    receivers: Mapping[str, Receiver] = {"http": Http(course.tally), "grpc": Grpc(course.tally)}
    port = free_port()
    owners = Owners(folder / "owners.yaml", course)
    ports = {name: one.port for name, one in receivers.items()}
    config = Configuration(folder / "agent.json", configuration(port, folder, ports), course)
    with agent(folder, course, trace) as process:
        watch = Watch(process, course, folder / COUNTS, trace=bool(trace))
        probes = Probes(port, course)
        ready(port, watch, folder / LOG)
        course.every(1.0, "scrapes", Scraper(port, course).scrape)
        course.every(0.5, "strays", Strays(port, course).come)
        course.every(5.0, "probes", probes.look)
        course.every(4.0, "owners", owners.change)
        for name, receiver in receivers.items():
            storm = Storm(f"{seed}/{name}", WEATHER, course.timeline)
            course.every(0.2, f"the {name} receiver", following(receiver, storm, course))
        if reload:
            course.every(1.0, "configuration", lambda: config.reload(process.pid))
        while course.now_s() < seconds and not watch.ended:
            watch.look()
            time.sleep(1.0)
        watch.calmed()
        course.end()
        end(process, course)
    for receiver in receivers.values():
        receiver.close()
    complaints(folder / LOG, course)
    return Outcome(
        [
            *verdict.agent(watch.agent, course.timeline),
            *verdict.objects(watch.blocks),
            *verdict.workers(watch.workers),
        ],
        course.tally.failures,
        struck(folder / STRUCK),
        course.tally.counts(),
        probes.status,
        watch.agent,
        watch.workers,
    )


def following(receiver: Receiver, storm: Storm, course: Course) -> Callable[[], None]:
    """Make what gives a receiver its weather."""
    return lambda: follow(receiver, storm, course.now_s())


def configuration(port: int, folder: Path, ports: Mapping[str, int]) -> Mapping[str, Any]:
    """Write the agent's configuration; `launch` puts another backend in place of this one."""
    http = {"endpoint": f"http://127.0.0.1:{ports['http']}", "interval": f"{PUSH_S}s"}
    grpc = {**http, "endpoint": f"http://127.0.0.1:{ports['grpc']}", "protocol": "grpc"}
    queue = {"directory": str(folder / "queue"), "max_bytes": QUEUE}
    return {
        "version": 1,
        "backend": f"simulated:{BOX}",
        "metrics": {"profile": "full", "enable": ["nvidia.gpu.process.*"]},
        "attribution": {"static": str(folder / "owners.yaml")},
        "events": {"kernel_log": "off"},
        "telemetry": {"log_format": "json"},
        "pipeline": [
            {"prometheus": {"address": f"127.0.0.1:{port}"}},
            {"otlp": {**http, "queue": queue}},
            {"otlp": {**grpc, "queue": {"max_bytes": QUEUE}}},
        ],
    }


@contextmanager
def agent(folder: Path, course: Course, trace: Path | None) -> Iterator[subprocess.Popen[bytes]]:
    """Start the agent; whatever happens, it is gone when the block ends."""
    spec = f"{course.start_s},{course.timeline.seconds},{course.seed},{folder / STRUCK}"
    backend = f"python:{Stormy.__module__}:{Stormy.__name__}:{spec}"
    command = [sys.executable, "-m", "bench.soak.launch", backend]
    command += [str(folder / COUNTS), str(trace or "-")]
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(folder)}  # for its control socket
    command += ["run", "--config", str(folder / "agent.json")]
    with (
        (folder / LOG).open("wb") as log,
        subprocess.Popen(command, stderr=log, cwd=ROOT, env=environ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def ready(port: int, watch: Watch, log: Path) -> None:
    """Wait until the agent serves. RuntimeError: it does not, and what it said."""
    until_s = time.monotonic() + READY_S
    while not watch.ended and time.monotonic() < until_s:
        with suppress(OSError):
            if get(port, "/readyz")[0] == 200:
                return
        time.sleep(0.1)
    raise RuntimeError(
        f"the agent does not become ready: {log.read_text(encoding='utf-8')[-2000:]}"
    )


def end(process: subprocess.Popen[bytes], course: Course) -> None:
    """End the agent as a service manager does; see that nothing of it is left."""
    started = children(process.pid)
    if process.poll() is not None:
        course.tally.fail(f"the agent ended, with status {process.returncode}", course.now_s())
        return
    process.terminate()
    try:
        status = process.wait(GONE_S)
    except subprocess.TimeoutExpired:
        course.tally.fail(f"the agent is not gone {GONE_S:g} s after SIGTERM", course.now_s())
        return
    left = [pid for pid in started if Path(f"/proc/{pid}").exists()]
    if status or left:
        course.tally.fail(f"the agent ended with {status}, and left {left}", course.now_s())


def complaints(log: Path, course: Course) -> None:
    """Count what the agent logged, by level; an exception is always a fault of the agent's own."""
    for text in log.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            line = json.loads(text)
        except ValueError:  # what gRPC's core says by itself
            course.tally.add("lines beside the log")
            continue
        course.tally.add(f"log lines, {line['level']}")
        if "exception" in line:
            course.tally.fail(f"the agent logged: {line['exception']}", course.now_s())


def free_port() -> int:
    """Give a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port
