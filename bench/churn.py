"""Memory after a million processes and a hundred thousand pods have come and gone.

    python -m bench.churn [--pids 1000000] [--pods 100000]

The agent's own objects, from the snapshot to the bytes: each step is a new snapshot with other
processes and another pod, collected, encoded and written as a page.
"""

from __future__ import annotations

import argparse
import gc
import os
import time
from collections.abc import Iterator
from dataclasses import replace

from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource

from bench.figure import Figure, at_most
from bench.table import show
from bench.workload import GPUS, METRICS
from otel_gpu.instruments import Instruments
from otel_gpu.model import Owner, Point, Reading, Snapshot
from otel_gpu.pipeline.encoding import Encoder
from otel_gpu.pipeline.exposition import Exposition, Format
from otel_gpu.provider import MeterProvider
from otel_gpu.usage import usage

OF_PROCESSES = METRICS[0]
OF_GPUS = [replace(metric, owner=True) for metric in METRICS[1:6]]
PIDS_AT_ONCE = 1_000
MEGA = 2**20


def snapshots(pids: int, pods: int) -> Iterator[Snapshot]:
    """Give one snapshot after another: each has other pids and, in turn, other pods."""
    steps = pids // PIDS_AT_ONCE
    per_step = max(1, pods // steps)
    for step in range(steps):
        now_ns, now_s = time.time_ns(), time.monotonic()
        first = step * PIDS_AT_ONCE
        processes = tuple(
            Point(float(pid), (("process.pid", pid),)) for pid in range(first, first + PIDS_AT_ONCE)
        )
        readings = [Reading(OF_PROCESSES, "GPU-0", processes, now_ns, now_s)]
        readings += [
            Reading(metric, uuid, (Point(1.0),), now_ns, now_s)
            for metric in OF_GPUS
            for uuid in GPUS
        ]
        for pod in range(per_step):
            name = f"train-{step}-{pod}"
            owner = Owner((("k8s.pod.name", name),), (("k8s.pod.uid", f"uid of {name}"),))
            yield Snapshot(
                readings=tuple(readings),
                devices=GPUS,
                up=dict.fromkeys(GPUS, True),
                owners=dict.fromkeys(GPUS, (owner,)),
                time_ns=now_ns,
                read_s=now_s,
            )


def rss_mb() -> float:
    gc.collect()
    used = usage(os.getpid())
    return used.rss_bytes / MEGA if used else 0.0


def figures(pids: int = 1_000_000, pods: int = 100_000) -> list[Figure]:
    """Give the growth after the first hundredth, which fills what is filled once."""
    published = iter(snapshots(pids, pods))
    now = [next(published)]
    reader, encoder, page = InMemoryMetricReader(), Encoder(), Exposition()
    provider = MeterProvider(
        [reader],
        lambda key: Resource(dict(key.owner.resource) if key.owner else {"hw.id": key.device}),
        shutdown_on_exit=False,
    )
    metrics = [OF_PROCESSES, *OF_GPUS]
    Instruments(metrics, lambda: now[0], every={}).register(provider.get_meter("bench"))
    warm, before_mb = pods // 100, 0.0
    for step, now[0] in enumerate(published):
        data = reader.get_metrics_data()
        if data is not None:
            encoder.encode(data)
        page.render(data, Format.TEXT)
        if step == warm:
            before_mb = rss_mb()
    grown_mb = rss_mb() - before_mb
    return [at_most("memory grown", grown_mb, 3.0, "MB", f"{pids} pids, {pods} pods came and went")]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pids", type=int, default=1_000_000)
    options.add_argument("--pods", type=int, default=100_000)
    chosen = options.parse_args()
    show("churn", figures(chosen.pids, chosen.pods))


if __name__ == "__main__":
    main()
