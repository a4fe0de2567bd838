"""Every benchmark that needs no GPU, as one table and as JSON.

python -m bench [--json FILE] [--quick]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from bench import agent_cost, churn, slow_clients, stock
from bench.figure import Figure
from bench.table import show, write


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--json", type=Path)
    options.add_argument("--quick", action="store_true", help="fewer rounds, less churn")
    chosen = options.parse_args()
    seconds, pids, pods = (30.0, 20_000, 2_000) if chosen.quick else (60.0, 200_000, 20_000)
    parts: dict[str, Callable[[], list[Figure]]] = {
        "2,000 series with 10 attributes": stock.figures,
        "the agent, 8 GPUs, full profile": lambda: agent_cost.figures(seconds),
        "paced scrapes": slow_clients.figures,
        "churn": lambda: churn.figures(pids, pods),
    }
    found: list[Figure] = []
    for title, part in parts.items():
        figures = part()
        show(title, figures)
        found += figures
    if chosen.json:
        write(chosen.json, found)


if __name__ == "__main__":
    main()
