"""Hours of bad days: does the agent grow while everything around it fails and comes back?

    python -m bench.soak [--minutes 60] [--seed N] [--json FILE] [--reload] [--trace FILE]

The agent as `otel-gpu run` starts it, with every metric and those of processes, on a simulated box
of 8 GPUs: GPUs are lost and come back, calls are refused, slow or never return, the worker is
killed, the driver is absent, Xids come, 192 processes give way to others all the time. Outside,
pods change; an OTLP receiver over HTTP (with a queue on disk) and one over gRPC are down, refuse,
take their time or break off; Prometheus scrapes every second, in six forms; other clients stay,
leave halfway or reset. All of it comes from the seed. With --reload the configuration changes too.

The run begins with a warm-up (three tenths of it, 10 minutes at most) and is then a row of storms
with a calm of 30 s before and after each. The calms compare like with like: in the last 12 s of
each there are the same clients, no fault and empty queues.

What must hold: handles and threads in the last calm are what they were in the first half's. The
blocks that Python's objects take, counted after a collection, are at most 30,000 more (some 2 MB;
what the load of the moment makes is up to 20,000). Resident memory is at most 3 MB more, and its
slope over the last half of the time is at most 1 MB/h and the noise: the spread of the samples
about the line over the length of that half, which is what one step of that size does to a slope.
It is stated with the figure.

In the first ten minutes the C library's heap finds its size: resident memory swings by 2 MB from
second to second, as pages are made, and grew by up to 6 MB in runs that then stayed level. So in a
run with a shorter warm-up (under 34 minutes) it may grow by 10 MB, and the slope is stated only.
What such a run shows: a handle or a thread that is not given back, one is enough; objects that pile
up, from 220 blocks a scrape in 4 minutes; memory lost outside of Python's allocator, from 75 kB a
scrape. It does not show less than that. An hour finds objects from 2.5 MB/h and memory from 4 to 5
MB/h; a night finds less than 1.

A worker is replaced before it could grow much; each one that lived for 30 s is judged for its
handles and threads alone. The allocator is the agent's own: MALLOC_ARENA_MAX and the like are taken
from the environment. --trace has the agent trace what it allocates, and writes down after each calm
what there is more of than after the first, by line; the agent is then too slow and large to pass.

Exits with 1, after a line for each, when something does not hold: a limit, a scrape or a probe
that failed, an agent that ended, or did not end in time.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from bench.figure import Figure
from bench.soak.run import Outcome, run
from bench.table import show, write


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--minutes", type=float, default=60.0)
    options.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000)
    options.add_argument("--json", type=Path, help="write the figures there")
    options.add_argument("--samples", type=Path, help="write every sample there, as JSON")
    options.add_argument("--reload", action="store_true", help="change the configuration too")
    options.add_argument("--trace", type=Path, help="write there what is allocated more and more")
    chosen = options.parse_args()
    if chosen.minutes < 4:
        options.error("--minutes: there is nothing to be seen in less than 4")
    print(f"soak: {chosen.minutes:g} min, seed {chosen.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        outcome = run(
            Path(folder), 60 * chosen.minutes, chosen.seed, reload=chosen.reload, trace=chosen.trace
        )
    show(f"soak, {chosen.minutes:g} min, seed {chosen.seed}", outcome.figures)
    tell(outcome)
    if chosen.json:
        write(chosen.json, [*outcome.figures, *counted(outcome)])
    if chosen.samples:
        rows = [one._asdict() for one in (*outcome.agent, *outcome.workers)]
        chosen.samples.write_text(json.dumps(rows), encoding="utf-8")
    sys.exit(not report(outcome))


def tell(outcome: Outcome) -> None:
    """Print what happened."""
    faults = ", ".join(f"{count} {kind}" for kind, count in outcome.faults.items())
    print(f"\nfaults that struck: {faults}")
    print("restarts of the worker:", outcome.status.get("driver", {}).get("restarts"))
    for name, count in outcome.counts.items():
        print(f"{name:36} {count:12}")
    for part, stats in outcome.status.get("pipeline", {}).items():
        print(f"{part}: {json.dumps(stats)}")


def counted(outcome: Outcome) -> list[Figure]:
    """Give what happened as lines of the table."""
    faults = {f"fault: {kind}": count for kind, count in outcome.faults.items()}
    counts = {**faults, **outcome.counts}
    return [Figure(name, count, None, "", "", holds=True) for name, count in counts.items()]


def report(outcome: Outcome) -> bool:
    """Print what does not hold; whether all does."""
    wrong = [
        f"{one.name} is {one.ours:.2f} {one.unit}, and must be {one.bound} ({one.note})"
        for one in outcome.figures
        if not one.holds
    ]
    for line in (*wrong, *outcome.failures):
        print(f"soak: {line}", file=sys.stderr)
    return not wrong and not outcome.failures


if __name__ == "__main__":
    main()
