"""NVLinks one by one, their bit error rates, the fabric, and what GPUs can do with each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from otel_gpu.model import Query
from tests.fake_nvml.facts import ALL_LINKS, BLACKWELL, FIELD, Thing
from tests.fake_nvml.machine import Values
from tests.fake_nvml.planting import LINKS, P2P, UUIDS
from tests.fake_nvml.told import Lines, Made, Told, made, on_gpus, states

LINK_STATES = ("inactive", "active", "sleep", "disabled")  # nvml.h, NVML_NVLINK_STATE_*


def each_link(board: str, field: int) -> list[Query]:
    """Give the questions for a field of every link."""
    return [Query(FIELD, (field, link)) for link in range(LINKS[board])]


Fold = Callable[[list[int]], int]


def in_state(state: int) -> Fold:
    """Count the links that are in a state."""
    return lambda heard: heard.count(state)


def over_links(of: str, board: str, field: int, values: Sequence[int], fold: Fold) -> Made:
    """Describe a point that is folded over the links that answer."""
    queries = each_link(board, field)

    def folded(told: Told) -> int | None:
        heard = [n for n, query in zip(values, queries, strict=True) if query in told.offered]
        return fold(heard) if heard else None

    return Made(Thing.of(of), frozenset(queries), folded)


@on_gpus
def links(board: str, turn: int) -> tuple[Lines, Sequence[Made]]:
    """Say of each NVLink in which state it is, how fast, and how many errors it had."""
    count = LINKS[board]
    now = [(place + turn) % len(LINK_STATES) for place in range(count)]
    speeds = [26_563 + 2 * place + turn for place in range(count)]  # MB/s
    rows = {164: speeds, 165: now}
    points = [over_links("nvlink bandwidth", board, 164, speeds, lambda x: sum(x) * 10**6)]
    points += [
        over_links(f"nvlink link status | {name}", board, 165, now, in_state(state))
        for state, name in enumerate(LINK_STATES)
    ]
    if board != BLACKWELL:  # NVLink 5 counts otherwise
        for field, kind in {161: "replay", 162: "recovery", 163: "crc"}.items():
            rows[field] = errors = [field * 101 + 2 * place + turn for place in range(count)]
            points.append(over_links(f"nvlink errors | {kind}", board, field, errors, sum))
    lines: dict[str, Values] = {
        f"{FIELD}({field},{link})": {"uint": value}
        for field, values in rows.items()
        for link, value in enumerate(values)
    }
    return lines, points


def bit_error_rates(board: str, turn: int) -> tuple[Lines, Sequence[Made]]:
    """Give rates as NVLink 5 does: exponent in bits 0 to 7, mantissa in bits 8 to 11."""
    if board != BLACKWELL:
        return {}, ()
    both = {220: "effective", 222: "symbol"}
    queries = [Query(FIELD, (field, ALL_LINKS)) for field in both]
    lines: dict[str, Values] = {}
    points = []
    for place, (field, kind) in enumerate(both.items()):
        mantissa, exponent = 3 + 2 * place + turn % 4, 12 + place
        lines[f"{FIELD}({field},{ALL_LINKS})"] = {"ull": mantissa << 8 | exponent}
        rate = mantissa * 10.0**-exponent
        points.append(made(f"nvlink bit_error_rate | {kind}", rate, *queries))
    return lines, points


FABRIC = Query("nvmlDeviceGetGpuFabricInfoV")
FABRIC_STATES = ("not_supported", "not_started", "in_progress", "completed")
FABRIC_CHECKS = ("degraded_bandwidth", "route_recovery", "route_unhealthy", "access")


def fabric_mask(turn: int) -> int:
    """Give two bits for each check: 1 is a fault, 2 is none. One fails in three of four rounds."""
    bad = turn % 4
    return sum((1 if place == bad and turn % 8 < 3 else 2) << 2 * place for place in range(4))


@on_gpus
def fabric(_board: str, turn: int) -> tuple[Lines, Sequence[Made]]:
    """Say how far the GPU is in the fabric, and which of its checks failed."""
    mask = fabric_mask(turn)
    points = states("fabric status", FABRIC_STATES, FABRIC_STATES[turn % 4], FABRIC)
    points += [
        made(f"fabric fault | {name}", int(mask >> 2 * place & 3 == 1), FABRIC)
        for place, name in enumerate(FABRIC_CHECKS)
    ]
    return {FABRIC.call: {"state": turn % 4, "healthMask": mask, "status": 0}}, points


@on_gpus
def peers(board: str, turn: int) -> tuple[Lines, Sequence[Made]]:
    """Say what a GPU can do with each other one: 0 is ok, 3 is a topology that cannot."""
    others = [(place, one) for place, one in enumerate(LINKS) if one != board]
    lines: dict[str, Values] = {}
    points = []
    for capability, name in enumerate(("read", "write", "nvlink", "atomics")):
        for index, other in others:
            fine = (capability + index + turn) % 3 == 0
            lines[f"{P2P}({index},{capability})"] = 0 if fine else 3
            words = f"p2p status | {UUIDS[other]} {name}"
            queries = [Query(P2P, (number,)) for number in range(4)]
            points.append(made(words, int(fine), *queries))
    return lines, points
