"""Compares every metric that nvidia-smi reports too, on real GPUs: smi, agent, smi.

    python -m tests.hardware.compare_smi --rounds 10 --label loaded > table.md

In each round nvidia-smi is asked several times, then the agent (through its worker process, as it
runs), then nvidia-smi again. The agent's value must lie between the least and the greatest of those
answers, one step of nvidia-smi's last digit allowed on both sides.

A reading that nvidia-smi itself gives differently from one answer to the next (power, clocks under
load) is a sample of noise: now and then one is the greatest of a handful without being wrong. Of
such a reading it is the median over the rounds that must lie within all of nvidia-smi's answers; of
all others every single value must. Exits with 1 when one does not.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from statistics import median
from typing import NamedTuple

from otel_gpu import __version__
from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.census import select
from otel_gpu.model import Profile, Snapshot
from otel_gpu.sampler import Plan, Sampler, tiers
from otel_gpu.sweep import intervals
from otel_gpu.worker.supervisor import Supervisor
from tests.hardware import smi
from tests.hardware.smi import Key, Value

OFTEN_S = 0.05  # every tier is due at every step, so that each round reads everything


class Bracket(NamedTuple):
    """What nvidia-smi said around the agent's reading, and the agent's value if it had one."""

    low: float
    high: float
    step: float
    ours: float | None

    @property
    def holds(self) -> bool:
        return self.ours is not None and (
            self.low - self.step - EXACT <= self.ours <= self.high + self.step + EXACT
        )


def verdict(seen: list[Bracket]) -> bool:
    """Judge all rounds of one reading, as the head of this file says."""
    if all(bracket.holds for bracket in seen):
        return True
    low, high = min(one.low for one in seen), max(one.high for one in seen)
    ours = [one.ours for one in seen if one.ours is not None]
    if low == high or len(ours) < len(seen):
        return False
    return Bracket(low, high, seen[0].step, median(ours)).holds


EXACT = 1e-9  # what decimal text and binary fractions differ by


def sampler(driver: Supervisor) -> Sampler:
    metrics = select(CATALOG, Profile.FULL)
    every = intervals(metrics, tiers(OFTEN_S, OFTEN_S, OFTEN_S), lambda _: OFTEN_S)
    return Sampler(driver, Plan(metrics=metrics, every=every))


def agent_values(snapshot: Snapshot) -> dict[Key, float]:
    return {
        (reading.device, reading.metric.name, point.attributes): point.value
        for reading in snapshot.readings
        for point in reading.points
    }


def bracketed(before: list[dict[Key, Value]], ours: dict[Key, float]) -> dict[Key, Bracket]:
    said: dict[Key, list[Value]] = defaultdict(list)
    for answer in before:
        for key, value in answer.items():
            said[key].append(value)
    return {
        key: Bracket(
            min(value.value for value in values),
            max(value.value for value in values),
            values[0].step,
            ours.get(key),
        )
        for key, values in said.items()
    }


def rounds(agent: Sampler, count: int, each: int) -> Iterable[dict[Key, Bracket]]:
    agent.step()  # the first one also probes what is supported
    for _ in range(count):
        answers = [smi.values(smi.ask()) for _ in range(each)]
        ours = agent_values(agent.step())
        answers += [smi.values(smi.ask()) for _ in range(each)]
        yield bracketed(answers, ours)


def table(brackets: list[dict[Key, Bracket]], names: dict[str, str]) -> tuple[list[str], int]:
    """Write a line for each GPU and reading; the last round's values stand for all."""
    lines = [
        "| GPU | metric | attributes | nvidia-smi | agent | rounds within | holds |",
        "|---|---|---|---|---|---|---|",
    ]
    wrong = 0
    for key in sorted({key for one in brackets for key in one}, key=str):
        seen = [one[key] for one in brackets if key in one]
        good = sum(bracket.holds for bracket in seen)
        right = verdict(seen)
        wrong += not right
        uuid, metric, attributes = key
        low, high = min(one.low for one in seen), max(one.high for one in seen)
        ours = [one.ours for one in seen if one.ours is not None]
        told = ", ".join(str(value) for _, value in attributes)
        lines.append(
            f"| {names[uuid]} | `{metric}` | {told} | {span(low, high)} | "
            f"{span(min(ours), max(ours)) if ours else 'none'} | {good} of {len(seen)} | "
            f"{'yes' if right else 'NO'} |"
        )
    return lines, wrong


def span(low: float, high: float) -> str:
    return f"{low:.12g}" if low == high else f"{low:.12g} .. {high:.12g}"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=10)
    options.add_argument("--each", type=int, default=3, help="answers of nvidia-smi on each side")
    options.add_argument("--label", default="")
    chosen = options.parse_args()
    driver = Supervisor("nvml")
    agent = sampler(driver)
    try:
        brackets = list(rounds(agent, chosen.rounds, chosen.each))
    finally:
        driver.close()
    names = {uuid: device.name for uuid, device in agent.snapshot.devices.items()}
    lines, wrong = table(brackets, names)
    extra = sorted(set(agent_values(agent.snapshot)) & set(smi.lacking(smi.ask())), key=str)
    system = agent.snapshot.system
    print(f"### {chosen.label}, {datetime.now(UTC):%Y-%m-%d}\n")
    models = ", ".join(sorted({device.model for device in agent.snapshot.devices.values()}))
    print(
        f"{len(names)} x {models}, driver {system.driver_version}, NVML {system.nvml_version}, "
        f"otel-gpu {__version__}, {chosen.rounds} rounds of {chosen.each} + 1 + {chosen.each}.\n"
    )
    print("\n".join(lines))
    print(f"\n{len(lines) - 2} readings, {wrong} that do not hold.")
    for uuid, metric, attributes in extra:
        print(f"nvidia-smi has no value for {names[uuid]} {metric} {dict(attributes)}; we have.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
