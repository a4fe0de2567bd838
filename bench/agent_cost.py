"""What the whole agent costs: CPU of its two processes, and memory.

    python -m bench.agent_cost [--seconds 60]

On the simulated box of 8 GPUs with the full profile, OTLP every 10 s, two scrapers every 15 s, one
of them with gzip. The simulated driver computes its answers in the worker, where a real one would
be asked; so the worker's CPU is stated apart.
"""

from __future__ import annotations

import argparse
import time
import urllib.request

from bench.agent import Running, agent, sink
from bench.figure import Figure, at_most
from bench.table import show

BOX = "simulated:h200x8"
SCRAPE_S = 15.0
LIMITS_MB = {"http/protobuf": 75.0, "grpc": 90.0}
WARM_S = 10.0
MEGA = 2**20


def scrape(running: Running, encoding: str) -> int:
    request = urllib.request.Request(running.page, headers={"accept-encoding": encoding})
    with urllib.request.urlopen(request, timeout=10) as response:
        return len(response.read())


def spend(running: Running, seconds: float) -> tuple[float, float]:
    """Scrape for a while; give the shares of a core that the agent and its worker used."""
    before = running.usage()
    began_s = time.monotonic()
    end_s = began_s + seconds
    while (now_s := time.monotonic()) < end_s:
        scrape(running, "identity")
        time.sleep(min(SCRAPE_S / 2, max(0.0, end_s - time.monotonic())))
        scrape(running, "gzip")
        time.sleep(max(0.0, min(now_s + SCRAPE_S, end_s) - time.monotonic()))
    after = running.usage()
    taken_s = time.monotonic() - began_s
    agent_share, worker_share = (
        (late.cpu_s - early.cpu_s) / taken_s for late, early in zip(after, before, strict=True)
    )
    return agent_share, worker_share


def figures(seconds: float = 60.0) -> list[Figure]:
    """Give the table's lines."""
    found = []
    with sink() as collector:
        for protocol, endpoint in zip(LIMITS_MB, collector, strict=True):
            otlp = {"endpoint": endpoint, "protocol": protocol, "interval": "10s"}
            with agent(BOX, otlp, metrics={"profile": "full"}) as running:
                time.sleep(WARM_S)
                share, worker = spend(running, seconds)
                memory_mb = running.usage()[0].rss_bytes / MEGA
                worker_mb = running.usage()[1].rss_bytes / MEGA
            found += [
                at_most(f"agent, {protocol}", 100 * share, 3.0, "% core", "without the worker"),
                Figure(f"worker, {protocol}", 100 * worker, None, "% core", "", holds=True),
                at_most(f"agent memory, {protocol}", memory_mb, LIMITS_MB[protocol], "MB RSS"),
                Figure(f"worker memory, {protocol}", worker_mb, None, "MB RSS", "", holds=True),
            ]
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=60.0)
    show("the agent, 8 GPUs, full profile", figures(options.parse_args().seconds))


if __name__ == "__main__":
    main()
