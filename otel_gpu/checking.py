"""Whether the GPUs of this node are well, in one line: for node-problem-detector and for Slurm.

`verdict` judges what was found, and is pure; `look` finds it, in a quarter of a minute at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from otel_gpu.catalog.health import DEGRADED, FAILED, PREDICTED, STATUS, causes
from otel_gpu.catalog.judging import LOST
from otel_gpu.config import Settings
from otel_gpu.model import Answer, Code, Device, Query, Refused
from otel_gpu.selection import chosen
from otel_gpu.worker.supervisor import Supervisor

LIMIT_S = 12.0
CALL_S, OPEN_S = 3.0, 8.0  # a call that takes longer hangs; a GPU may take seconds to be opened
PAUSE_S = 0.2

LOST_WORDS, NOT_OPEN = "is lost or needs a reset", "does not open"
OK, UNKNOWN = "healthy", "unknown"
ORDER = (FAILED, PREDICTED, DEGRADED, UNKNOWN, OK)


class Exit(IntEnum):
    """What node-problem-detector takes a plug-in's exit status for."""

    HEALTHY = 0
    ILL = 1
    UNKNOWN = 2


@dataclass(frozen=True, slots=True)
class Found:
    """What was found: the GPUs, what each answered, those that hang, and why there are none."""

    devices: Sequence[Device] = ()
    answers: Mapping[str, Mapping[Query, Answer]] = field(default_factory=dict)
    refused: Sequence[Refused] = ()
    hung: frozenset[str] = frozenset()
    trouble: str = ""


class Verdict(NamedTuple):
    """An exit status, and the line that goes with it."""

    code: Exit
    line: str


class _One(NamedTuple):
    """What is to be said of one GPU."""

    state: str
    name: str
    words: str
    identity: str = ""


def verdict(found: Found, expected: int | None = None) -> Verdict:
    """Judge; the worst first, and what tells most at the beginning: some cut the line at 80.

    `expected` is how many GPUs there must be.
    """
    said = [_judged(device, found) for device in found.devices]
    said += [
        _One(FAILED, f"GPU {one.index}", LOST_WORDS if one.code in LOST else NOT_OPEN, one.uuid)
        for one in found.refused
    ]
    count = len(said)
    if expected is not None and count < expected:
        why = found.trouble and f": {found.trouble}"
        said.append(_One(FAILED, f"{count} of {expected} GPUs", f"are here{why}"))
    elif found.trouble or not said:
        return Verdict(Exit.UNKNOWN, f"{UNKNOWN}: {found.trouble or 'there is no GPU'}")
    said.sort(key=lambda one: ORDER.index(one.state))
    worst = said[0].state
    if worst == OK:
        return Verdict(Exit.HEALTHY, f"{OK}: {count} GPU{'s' * (count != 1)}")
    ill = [one for one in said if one.state != OK]
    well = sum(1 for one in said if one.state == OK)
    told = "; ".join(_line(one) for one in ill)
    code = Exit.UNKNOWN if worst == UNKNOWN else Exit.ILL
    rest = f"; {well} of {count} GPUs are healthy" if count else ""
    return Verdict(code, f"{worst}: {told}{rest}")


def look(settings: Settings, clock: Callable[[], float] = time.monotonic) -> Found:
    """Ask each GPU how it is. Raises nothing for what the driver does."""
    end_s = clock() + LIMIT_S
    driver = Supervisor(settings.backend, deadline_s=CALL_S, open_deadline_s=OPEN_S)
    known: dict[str, Device] = {}
    answers: dict[str, Mapping[Query, Answer]] = {}
    queries = STATUS.read.queries
    try:
        while clock() < end_s:
            system = driver.system(clock())
            if system is None:
                if driver.trouble and driver.trouble.code not in {Code.TIMEOUT, Code.UNKNOWN}:
                    break
            else:
                here = chosen(system.devices, settings.gpus.include, "gpus")
                known |= {device.uuid: device for device in here}
                asked = [(one.uuid, queries) for one in here if one.uuid not in answers]
                for told in driver.ask(asked):
                    answers[told.uuid] = dict(zip(queries, told.answers, strict=True))
                if _are_all_heard(known, answers, {uuid for _, uuid, _ in driver.hung}):
                    break
            time.sleep(PAUSE_S)
        system, trouble = driver.system(clock()), driver.trouble
        return Found(
            tuple(known.values()),
            answers,
            system.refused if system else (),
            frozenset(uuid for _, uuid, _ in driver.hung),
            "" if known or trouble is None else f"no driver: {trouble.text}",
        )
    finally:
        driver.close()


def _are_all_heard(known: Iterable[str], answered: Iterable[str], hung: set[str]) -> bool:
    return set(known) <= {*answered, *hung}


def _judged(device: Device, found: Found) -> _One:
    name = device.name or f"GPU {device.index}"
    identity = " ".join(filter(None, (device.pci_address, device.uuid)))
    answers = found.answers.get(device.uuid)
    if answers is None:
        hangs = "a call to the driver hangs" if device.uuid in found.hung else "does not answer"
        return _One(FAILED, name, hangs, identity)
    if any(answer.code in LOST for answer in answers.values()):
        return _One(FAILED, name, LOST_WORDS, identity)
    known = {query: answer.value for query, answer in answers.items() if answer.ok}
    if not known:
        return _One(UNKNOWN, name, "tells nothing of its health", identity)
    wrong = causes(known)
    if not wrong:
        return _One(OK, name, "", identity)
    return _One(wrong[0].state, name, ", ".join(cause.words for cause in wrong), identity)


def _line(one: _One) -> str:
    return f"{one.name} {one.words} ({one.identity})" if one.identity else f"{one.name} {one.words}"
