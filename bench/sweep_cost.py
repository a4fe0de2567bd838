"""What a sweep costs, against the frozen bare loop: the same reads at the same tiers, in one run.

    python -m bench.sweep_cost --seconds 120

Both read GPU 0 once a second, half a second apart, so that neither lives off what the driver still
has from the other. The agent's side is its sampler and its worker process, without any export; the
baseline is `bench/bare_loop.py`. Prints CPU per sweep of each and the ratio.
"""

from __future__ import annotations

import argparse
import json
import time

from bench.bare_loop import BareLoop
from otel_gpu.config import load
from otel_gpu.planning import plan
from otel_gpu.sampler import Sampler
from otel_gpu.worker.supervisor import Supervisor

WARM_S = 5.0


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=120.0)
    chosen = options.parse_args()
    loop = BareLoop([0])
    loop.open()
    driver = Supervisor("nvml")
    settings = load(None, {}, {"gpus.include": [0]}).settings
    sampler = Sampler(driver, plan(settings))
    bare_s = agent_s = worker_s = 0.0
    sweeps = 0
    begin_s = time.monotonic()
    tick_s = begin_s
    while tick_s < begin_s + WARM_S + chosen.seconds:
        counted = tick_s >= begin_s + WARM_S
        before = driver.usage()
        cpu_s = time.process_time()
        loop.tick(time.monotonic())
        bare = time.process_time() - cpu_s
        time.sleep(max(0.0, tick_s + 0.5 - time.monotonic()))
        cpu_s = time.process_time()
        sampler.step()
        ours = time.process_time() - cpu_s
        after = driver.usage()
        if counted and before and after:
            bare_s += bare
            agent_s += ours
            worker_s += after.cpu_s - before.cpu_s
            sweeps += 1
        tick_s += 1.0
        time.sleep(max(0.0, tick_s - time.monotonic()))
    driver.close()
    loop.close()
    ratio = (agent_s + worker_s) / bare_s
    print(
        json.dumps(
            {
                "sweeps": sweeps,
                "bare_ms": round(1e3 * bare_s / sweeps, 3),
                "sampler_ms": round(1e3 * agent_s / sweeps, 3),
                "worker_ms": round(1e3 * worker_s / sweeps, 3),
                "ratio": round(ratio, 3),
            }
        )
    )


if __name__ == "__main__":
    main()
