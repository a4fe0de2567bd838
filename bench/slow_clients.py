"""What a scrape takes beside pushes and sweeps, and what a crowd of slow clients adds to it.

    python -m bench.slow_clients [--seconds 20]

Eight clients that keep their connections ask in turn, at a steady pace, for the page of an agent
with some 1,700 series that pushes OTLP every second, and for a constant page of the same size from
the same process. Then 500 clients send headers that never end and 500 read at 1 KB/s.
"""

from __future__ import annotations

import argparse
import http.client
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import quantiles
from threading import Thread
from typing import IO, NamedTuple, cast

from bench.agent import sink
from bench.figure import Figure, at_most
from bench.table import show
from otel_gpu.usage import usage

CLIENTS = 8
PAUSE_S = 0.2  # of each client, between two requests
SLOW = 500  # of each kind
SETTLE_S = 8.0  # in which the crowd arrives, and the first of it are dropped
MEGA = 2**20


class Served(NamedTuple):
    """A process with an agent and a constant page."""

    pid: int
    page: int
    constant: int

    def rss_mb(self) -> float:
        used = usage(self.pid)
        return used.rss_bytes / MEGA if used else 0.0


@contextmanager
def child(*words: str) -> Iterator[tuple[int, str]]:
    """Run a module until the block ends; give its pid and the first line that it says."""
    command = [sys.executable, "-m", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as one:
        yield one.pid, cast("IO[str]", one.stdout).readline()
        one.communicate("")


def ask(port: int, until_s: float, offset_s: float, taken_s: list[float]) -> None:
    """Ask again and again on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    time.sleep(offset_s)
    while time.monotonic() < until_s:
        began_s = time.monotonic()
        connection.request("GET", "/metrics")
        connection.getresponse().read()
        taken_s.append(time.monotonic() - began_s)
        time.sleep(PAUSE_S)
    connection.close()


def p99_ms(port: int, seconds: float) -> float:
    """Give the time within which 99 of 100 answers were there."""
    until_s, taken_s = time.monotonic() + seconds, list[float]()
    offsets = [PAUSE_S * place / CLIENTS for place in range(CLIENTS)]
    clients = [Thread(target=ask, args=(port, until_s, each, taken_s)) for each in offsets]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return 1e3 * quantiles(taken_s, n=100)[98]


def figures(seconds: float = 20.0) -> list[Figure]:
    """Give the table's lines."""
    with sink() as collector, child("bench.served", collector.http) as (pid, said):
        page, constant, size = map(int, said.split())
        served = Served(pid, page, constant)
        p99_ms(served.page, 3.0)  # warm
        plain, calm = p99_ms(served.constant, seconds), p99_ms(served.page, seconds)
        before_mb = served.rss_mb()
        with child("bench.slow", str(served.page), str(SLOW)):
            time.sleep(SETTLE_S)
            crowded = p99_ms(served.page, seconds)
            crowd_mb = served.rss_mb()
    note = f"{size} bytes"
    return [
        Figure("scrape, p99", calm, plain, "ms", "<= 3 x longer", calm <= 3 * plain, note),
        at_most("slow clients add, p99", crowded - calm, 50.0, "ms", f"{2 * SLOW} of them"),
        at_most("slow clients add, memory", crowd_mb - before_mb, 10.0, "MB RSS"),
    ]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=20.0)
    show("paced scrapes", figures(options.parse_args().seconds))


if __name__ == "__main__":
    main()
