"""What is no single number of NVML's: states, masks, lists, and what is made of several answers.

A topic says, for a board and a round, which lines of the text file tell it, and which points it
must lead to. Written from nvml.h, as `facts.py` is. A topic of the catalog that is new needs a
function in one of `topics/`, and a place in the list here.
"""

from __future__ import annotations

from tests.fake_nvml.machine import Values
from tests.fake_nvml.told import Made, Topic
from tests.fake_nvml.topics import boards, health, links, processes

TOPICS: tuple[Topic, ...] = (
    boards.clock_reasons,
    boards.power_ring,
    boards.memory_fraction,
    boards.integrals,
    links.links,
    links.bit_error_rates,
    links.fabric,
    links.peers,
    health.retired_pages,
    health.recovery,
    health.modes,
    health.licence,
    health.status,
    processes.processes,
    processes.process_utilization,
)


def scene(board: str, turn: int) -> tuple[dict[str, Values], tuple[Made, ...]]:
    """Put all topics of a board together for a round."""
    lines: dict[str, Values] = {}
    points: list[Made] = []
    for topic in TOPICS:
        more, made_of_them = topic(board, turn)
        lines |= more
        points += made_of_them
    return lines, tuple(points)
