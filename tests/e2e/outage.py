"""Collectors that are gone for a while, and an agent that is killed meanwhile: what arrives?

`python -m tests.e2e.outage --down 600 --interval 15` plays it in real lengths, and prints a table.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .agent import Agent
from .binaries import Binaries, build
from .ledger import Account, Queued, arrivals
from .servers import Collector

NODE = "outage-box"
KEPT, MEMORY = "otlp/0", "otlp/1"
BEFORE = 4
"""Batches that come before the outage, and after it."""
REPLAYED = 4
"""Batches of the outage that have come when the agent is killed once more."""


@dataclass(frozen=True)
class Plan:
    """How long the Collectors are gone, in all, and how often the agent pushes."""

    interval_s: float = 0.25
    down_s: float = 3.0

    @property
    def half(self) -> int:
        """Batches that are collected in half of the outage."""
        return max(2, round(self.down_s / self.interval_s / 2))

    @property
    def patience_s(self) -> float:
        """How long nothing may happen: attempts are 30 s apart in the end."""
        return 60.0 + self.down_s + BEFORE * self.interval_s


@dataclass
class Outcome:
    """What came of it, by target; the seconds are from a Collector's return to an empty queue."""

    accounts: dict[str, Account] = field(default_factory=dict)
    drain_s: dict[str, float] = field(default_factory=dict)


class Outage:
    """An agent with two targets: one with a queue on disk, one with a queue in memory.

    Both Collectors stop. In the middle the agent is killed and started again. The Collector of
    the queue in memory comes back, then the other; while that is sent what it missed, the agent is
    killed a second time.
    """

    def __init__(self, binaries: Binaries, directory: Path, plan: Plan) -> None:
        self._plan = plan
        self._collectors: dict[str, Collector] = {}
        for part in (KEPT, MEMORY):
            own = directory / part.replace("/", "-")
            own.mkdir()
            self._collectors[part] = Collector(binaries, own)
        queues = {KEPT: {"directory": str(directory / "queue")}, MEMORY: {}}
        self._agent = agent(
            directory,
            [target(self._collectors[part], plan.interval_s, queues[part]) for part in queues],
        )
        self._ends_ns: list[int] = []
        self._queued: dict[str, list[Queued]] = {KEPT: [], MEMORY: []}

    def play(self) -> Outcome:
        """Play all of it."""
        outcome = Outcome()
        with ExitStack() as stack:
            for one in (*self._collectors.values(), self._agent):
                stack.enter_context(one)
            for part in self._collectors:
                self._wait_for_arrivals(part, BEFORE)
            self._go_through_outage()
            outcome.drain_s[MEMORY] = self._return(MEMORY)
            outcome.drain_s[KEPT] = self._return(KEPT, self._kill)
            for part in self._collectors:
                self._wait_for_arrivals(part, self._count(part) + BEFORE)
            self._end(self._agent.stop)
        outcome.accounts = {part: self._account(part) for part in self._collectors}
        return outcome

    def _go_through_outage(self) -> None:
        for collector in self._collectors.values():
            collector.stop()
        self._wait_for_backlog(self._plan.half)
        self._kill()
        self._wait_for_backlog(self._plan.half)
        self._ask()

    def _return(self, part: str, meanwhile: Callable[[], None] = lambda: None) -> float:
        """Start a Collector, wait until the queue is empty, and say how long that took."""
        before = self._count(part)
        began_s = time.monotonic()
        self._collectors[part].start()
        self._wait_for_arrivals(part, before + REPLAYED)
        meanwhile()
        self._agent.wait_until(
            lambda: not self._backlog(part)["batches"], self._plan.patience_s, "an empty queue"
        )
        return time.monotonic() - began_s

    def _kill(self) -> None:
        self._end(self._agent.kill)
        self._agent.start()

    def _end(self, end: Callable[[], None]) -> None:
        """Ask once more what there is, and end the agent."""
        self._ask()
        self._ends_ns.append(time.time_ns())
        end()

    def _ask(self) -> None:
        for part, queued in self._queued.items():
            stats = self._agent.exports(part)
            queued.append(Queued.of(stats, time.time_ns()))

    def _backlog(self, part: str) -> dict[str, Any]:
        backlog: dict[str, Any] = self._agent.exports(part)["backlog"]
        return backlog

    def _wait_for_backlog(self, batches: int) -> None:
        # The queue in memory is the one that a kill empties.
        self._agent.wait_until(
            lambda: self._backlog(MEMORY)["batches"] >= batches,
            self._plan.patience_s,
            f"{batches} batches in the queue",
        )

    def _wait_for_arrivals(self, part: str, count: int) -> None:
        self._collectors[part].wait_for(
            lambda batches: len(arrivals(batches)) >= count, self._plan.patience_s
        )

    def _count(self, part: str) -> int:
        return len(arrivals(self._collectors[part].batches()))

    def _account(self, part: str) -> Account:
        came = arrivals(self._collectors[part].batches())
        return Account(
            # What the agent collects in its very end is on no grid.
            arrived=[one for one in came if one.time_ns <= self._ends_ns[-1]],
            ends_ns=self._ends_ns,
            queued=self._queued[part],
            interval_s=self._plan.interval_s,
            node=NODE,
        )


def target(collector: Collector, interval_s: float, queue: dict[str, str]) -> dict[str, Any]:
    """Give the part of the pipeline that pushes to a Collector."""
    every = f"{round(interval_s * 1000)}ms"
    return {"otlp": {"endpoint": collector.http_endpoint, "interval": every, "queue": queue}}


def agent(directory: Path, pipeline: list[dict[str, Any]]) -> Agent:
    """Make an agent of a small box, on the node whose grid is known."""
    config = {"resource": {"attributes": {"k8s.node.name": NODE}}}
    return Agent(directory, backend="simulated:rtx4090", pipeline=pipeline, config=config)


def table(outcome: Outcome) -> str:
    """Write the figures as a table, in batches if nothing else is said."""
    names = {KEPT: "queue on disk", MEMORY: "queue in memory"}
    lines = [f"{'':30}" + "".join(f"{names[part]:>18}" for part in outcome.accounts)]

    def add(label: str, figure: Callable[[str, Account], str]) -> None:
        figures = (figure(part, account) for part, account in outcome.accounts.items())
        lines.append(f"{label:30}" + "".join(f"{one:>18}" for one in figures))

    lives = range(3)
    add("enqueued", lambda _, a: str(len(a.first) + sum(map(a.lost, lives))))
    add("arrived", lambda _, a: str(len(a.first)))
    add("duplicates", lambda _, a: str(a.duplicates))
    add("duplicates that differ", lambda _, a: str(len(a.altered)))
    add("oldest first", lambda _, a: "yes" if a.in_order else "no")
    add("dropped and counted (points)", lambda _, a: str(a.dropped))
    for life, name in enumerate(("until the first kill", "until the second", "after it")):
        add(f"missing, {name}", lambda _, a, life=life: str(a.lost(life)))  # type: ignore[misc]  # mypy sees no default in a lambda
    add("waiting at the kills", lambda _, a: ", ".join(str(a.waiting(life)) for life in (0, 1)))
    add("seconds to drain", lambda part, _: f"{outcome.drain_s[part]:.1f}")
    return "\n".join(lines)


def main() -> None:
    """Play an outage as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--down", type=float, default=600.0, help="seconds of outage")
    parser.add_argument("--interval", type=float, default=15.0, help="seconds between two pushes")
    given = parser.parse_args()
    plan = Plan(interval_s=given.interval, down_s=given.down)
    with tempfile.TemporaryDirectory(prefix="otel-gpu-outage-") as directory:
        print(table(Outage(build(), Path(directory), plan).play()))


if __name__ == "__main__":
    main()
