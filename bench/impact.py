"""What the agent costs its host: a bf16 matmul loop and the board's idle power, agent on and off.

    python -m bench.impact --pairs 5 --seconds 15

Alternates, so that drift of clocks and temperature falls on both sides alike. Prints a line for
each pair and what they come to: throughput on / off, and idle power on - off. Needs PyTorch.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, median

import pynvml  # noqa: TID251 - the measure must not depend on what is measured
import torch

SIZE = 8192
BATCH = 20  # products between two looks at the clock
SETTLE_S = 3.0
CONFIG = """
version: 1
metrics: {{profile: {profile}}}
pipeline:
  - prometheus: {{address: "127.0.0.1:9400"}}
  - otlp: {{endpoint: "http://127.0.0.1:4318", interval: 15s}}
"""


@contextmanager
def agent(profile: str) -> Iterator[None]:
    """Run the agent as a user would: serving, pushing (to nobody), in its default rhythm."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "agent.yaml"
        config.write_text(CONFIG.format(profile=profile), encoding="utf-8")
        command = [sys.executable, "-m", "otel_gpu", "run", "--config", str(config)]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            time.sleep(SETTLE_S)  # the enumeration is not what is measured
            yield
        finally:
            process.terminate()
            process.wait(10)


def throughput(seconds: float) -> float:
    """Give the products a second of 8192 x 8192 bf16 matrices on the first GPU."""
    matrix = torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16)
    torch.cuda.synchronize()
    count, begin_s = 0, time.perf_counter()
    while (now_s := time.perf_counter()) < begin_s + seconds:
        for _ in range(BATCH):
            torch.mm(matrix, matrix)
        torch.cuda.synchronize()
        count += BATCH
    return count / (now_s - begin_s)


def idle_power(seconds: float) -> float:
    """Give the first GPU's mean watts, from its energy counter."""
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    begin_mj, begin_s = pynvml.nvmlDeviceGetTotalEnergyConsumption(handle), time.perf_counter()
    time.sleep(seconds)
    end_mj, end_s = pynvml.nvmlDeviceGetTotalEnergyConsumption(handle), time.perf_counter()
    return float((end_mj - begin_mj) / 1e3 / (end_s - begin_s))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pairs", type=int, default=5)
    options.add_argument("--seconds", type=float, default=15.0)
    options.add_argument("--idle-seconds", type=float, default=8.0)
    options.add_argument("--profile", default="standard")
    chosen = options.parse_args()
    pynvml.nvmlInit()
    for name, measure, seconds in (
        ("idle power, W", idle_power, chosen.idle_seconds),
        ("throughput, products/s", throughput, chosen.seconds),
    ):
        measure(SETTLE_S)  # warm up
        off: list[float] = []
        on: list[float] = []
        for pair in range(chosen.pairs):
            off.append(measure(seconds))
            with agent(chosen.profile):
                on.append(measure(seconds))
            print(f"{name}: pair {pair}: off {off[-1]:.3f}, on {on[-1]:.3f}", flush=True)
        ratios = [a / b for a, b in zip(on, off, strict=True)]
        print(
            f"{name}: mean off {fmean(off):.3f}, on {fmean(on):.3f}, "
            f"on - off {fmean(on) - fmean(off):+.3f}, median on/off {median(ratios):.5f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
