"""What collecting, encoding and scraping cost, against the stock SDK with the same observations.

    python -m bench.stock [--rounds 5]

CPU time of one thread, the least of many times. Each side runs in processes of its own, ours and
stock in turn: in one process each would find the other's objects in the processor's caches.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from prometheus_client import generate_latest

from bench.figure import Figure, at_least
from bench.table import show
from bench.workload import SERIES, Workload
from otel_gpu.pipeline.encoding import Encoder
from otel_gpu.pipeline.exposition import Exposition, Format
from otel_gpu.pipeline.scrapes import GZIP_LEVEL

REPEATED = 15  # times in one process
STOCK_LEVEL = 9  # of gzip, the exporter's own


class Side(NamedTuple):
    """How one side does each thing."""

    collect: Callable[[], Any]
    encode: Callable[[Any], bytes]
    scrape: Callable[[], bytes]
    level: int


def ours(load: Workload) -> Side:
    encoder, page = Encoder(), Exposition()

    def encode(data: Any) -> bytes:
        ((body, _),) = encoder.encode(data)
        return body

    def scrape() -> bytes:
        return page.render(load.ours.get_metrics_data(), Format.TEXT)

    return Side(load.ours.get_metrics_data, encode, scrape, GZIP_LEVEL)


def stock(load: Workload) -> Side:
    def encode(data: Any) -> bytes:
        return encode_metrics(data).SerializeToString()

    def scrape() -> bytes:
        return generate_latest(load.registry)

    return Side(load.stock.get_metrics_data, encode, scrape, STOCK_LEVEL)


SIDES = {"ours": ours, "stock": stock}


def measure(name: str) -> dict[str, float]:
    """Give the least CPU seconds of each thing, of one side, in this process."""
    load = Workload()
    side = SIDES[name](load)
    least: dict[str, float] = {}

    def timed(what: str, work: Callable[[], Any]) -> Any:
        began_s = time.thread_time()
        made = work()
        taken_s = time.thread_time() - began_s
        least[what] = min(taken_s, least.get(what, taken_s))
        return made

    gc.collect()
    for _ in range(REPEATED):
        load.sweep()
        timed("collect new", side.collect)
        data = timed("collect", side.collect)
        timed("encode", partial(side.encode, data))
        load.sweep()
        page = timed("scrape", side.scrape)
        timed("gzip", partial(gzip.compress, page, side.level))
    return least


def figures(rounds: int = 5) -> list[Figure]:
    """Give the table's lines."""
    least: dict[str, dict[str, float]] = {"ours": {}, "stock": {}}
    for _ in range(rounds):
        for name, so_far in least.items():
            command = [sys.executable, "-m", "bench.stock", "--side", name]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            for what, seconds in json.loads(done.stdout).items():
                so_far[what] = min(seconds, so_far.get(what, seconds))
    mine, theirs = least["ours"], least["stock"]

    def against(name: str, times: float, note: str, *parts: str) -> Figure:
        return at_least(
            name,
            sum(mine[part] for part in parts),
            sum(theirs[part] for part in parts),
            times,
            note,
        )

    return [
        against("collect", 30, "the observations are there", "collect"),
        against(
            "collect, new snapshot", 0, "and the observations are made, by both", "collect new"
        ),
        against("OTLP encoding", 25, "collection to bytes", "encode"),
        against("whole scrape", 30, "new snapshot: observe, collect, write", "scrape"),
        against("whole scrape, gzip", 20, "ours at level 1, stock at its 9", "scrape", "gzip"),
    ]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--side", choices=list(SIDES))
    chosen = options.parse_args()
    if chosen.side:
        print(json.dumps(measure(chosen.side)))
    else:
        show(f"{SERIES} series with 10 attributes", figures(chosen.rounds))


if __name__ == "__main__":
    main()
