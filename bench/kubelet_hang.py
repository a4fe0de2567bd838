"""What a scrape takes while the kubelet does not answer, beside what it takes while it does.

    python -m bench.kubelet_hang [--seconds 10]

An agent on a simulated box of eight with a pod on each GPU, and a real gRPC server as the kubelet,
which then leaves a question unanswered for its whole deadline.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import requests

from bench.figure import Figure
from bench.table import show
from tests.attribution.kubernetes.node import Node, container
from tests.running import free_port, otel_gpu, page, running, wait_for

BACKEND = "simulated:h200x8"
PAUSE_S = 0.02
MOST = 1.5  # times: what two runs of the same differ by on a busy machine


def scrapes(port: int, for_s: float) -> list[float]:
    """Scrape again and again; give what each took, in milliseconds."""
    taken_ms = []
    session = requests.Session()
    end_s = time.monotonic() + for_s
    while time.monotonic() < end_s:
        begun_s = time.monotonic()
        session.get(f"http://127.0.0.1:{port}/metrics", timeout=10).raise_for_status()
        taken_ms.append((time.monotonic() - begun_s) * 1e3)
        time.sleep(PAUSE_S)
    return taken_ms


def figures(seconds: float = 10.0) -> list[Figure]:
    """Give the median and the 99th of a hundred, before a hang and during it."""
    listed = json.loads(otel_gpu("once", "--backend", BACKEND, "--format", "json").stdout)
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        node = Node(Path(folder) / "kubelet.sock")
        for number, gpu in enumerate(listed["gpus"]):
            node.give(f"train-{number}", container("main", gpu["identity"]["uuid"]))
        node.serve()
        attribution = {"kubernetes": "on", "pod_resources_socket": str(node.path)}
        config = Path(folder) / "agent.json"
        parts = [{"prometheus": {"address": f"127.0.0.1:{port}"}}]
        settings = {"version": 1, "backend": BACKEND, "attribution": attribution, "pipeline": parts}
        config.write_text(json.dumps(settings), encoding="utf-8")
        with running("run", "--config", str(config)):
            wait_for(lambda: page(port).count("nvidia_gpu_allocation{") == 8, "owners")
            before = scrapes(port, seconds)
            node.hangs.set()
            asked = len(node.asked)
            wait_for(lambda: len(node.asked) > asked, "question")
            during = scrapes(port, seconds)
            wait_for(lambda: 'otel_gpu_reason="timeout"' in page(port), "time-out")
        node.die()
    return [
        compared("median scrape in a hang", during, before, 0.5),
        compared("p99 scrape in a hang", during, before, 0.99),
    ]


def compared(name: str, during: list[float], before: list[float], part: float) -> Figure:
    ours, usual = (quantile(taken, part) for taken in (during, before))
    holds = ours <= MOST * usual
    bound = f"<= {MOST:g} x usual"
    return Figure(name, ours, usual, "ms", bound, holds, f"{len(during)} scrapes")


def quantile(taken: list[float], part: float) -> float:
    return statistics.quantiles(taken, n=100)[round(part * 100) - 1]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=10.0)
    show("the kubelet hangs", figures(options.parse_args().seconds))


if __name__ == "__main__":
    main()
