"""The words that ask for a simulated box: which, how many GPUs, how busy, and what goes wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import inf, isfinite
from typing import Any

from otel_gpu.backends.simulation.boxes import BOXES, Box
from otel_gpu.backends.simulation.faulty import ANY, INIT, Fault
from otel_gpu.model import Code, ConfigError

DEFAULT_BOX = "h200x8"
DEFAULT_LOAD = 0.8
MOST_GPUS = 64
UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}

GRAMMAR = (
    f"write BOX[,gpus=1..{MOST_GPUS}][,seed=N][,load=0..1][,start=SECONDS][,fault=FAULT]...; "
    f"BOX is {', '.join(BOXES)}; FAULT is lost:GPU3, unsupported:CALL, refuse:CODE:CALL, "
    "slow:CALL:50ms, hang:CALL or absent, then optionally @GPU1 and @5s or @5s-30s; CALL is an "
    f"NVML function, fieldN or {ANY}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What was asked for. `start_s`: the monotonic second from which faults count their time."""

    box: Box
    gpus: int
    seed: int = 0
    load: float = DEFAULT_LOAD
    start_s: float | None = None
    faults: tuple[Fault, ...] = ()


def parse(text: str, calls: Collection[str]) -> Spec:
    """Read a spec; `calls` are the NVML functions that the backend knows.

    Raises ConfigError, which lists all that is wrong, one a line, and then what can be written.
    """
    words = [word.strip() for word in text.split(",")] if text.strip() else []
    name = words.pop(0) if words and "=" not in words[0] else DEFAULT_BOX
    problems = [] if name in BOXES else [f"there is no box {name!r}"]
    box = BOXES.get(name, BOXES[DEFAULT_BOX])
    options = read_options([word for word in words if not word.startswith("fault=")], problems)
    gpus = options.setdefault("gpus", box.gpus)
    asked = [word.removeprefix("fault=") for word in words if word.startswith("fault=")]
    faults = read_faults(asked, gpus, calls, problems)
    if problems:
        lines = [f"simulated:{text!r}: {problem}" for problem in problems]
        raise ConfigError("\n".join([*lines, GRAMMAR]))
    return Spec(box=box, faults=faults, **options)


def read_options(words: Sequence[str], problems: list[str]) -> dict[str, Any]:
    """Read NAME=VALUE words, and add to `problems` what cannot be read."""
    options: dict[str, Any] = {}
    for word in words:
        try:
            member, value = read_option(word)
        except ConfigError as error:
            problems.append(f"{word!r}: {error}")
        else:
            if member in options:
                problems.append(f"{word!r}: it is there twice")
            options[member] = value
    return options


def read_option(word: str) -> tuple[str, Any]:
    """Read NAME=VALUE: the member of Spec and its value. Raises ConfigError."""
    name, _, value = word.partition("=")
    if name not in OPTIONS:
        raise ConfigError("it is not an option")
    member, read = OPTIONS[name]
    return member, read(value)


def read_faults(
    texts: Sequence[str], gpus: int, calls: Collection[str], problems: list[str]
) -> tuple[Fault, ...]:
    """Read faults, and add to `problems` what cannot be read."""
    faults: list[Fault] = []
    for text in texts:
        try:
            faults.append(parse_fault(text, gpus, calls))
        except ConfigError as error:
            problems.append(f"fault {text!r}: {error}")
    return tuple(faults)


def parse_fault(text: str, gpus: int, calls: Collection[str]) -> Fault:
    """Read KIND[:DETAIL]...[@GPUn][@FROM[-UNTIL]], for a box of so many GPUs.

    Raises ConfigError, which says what is wrong.
    """
    head, *narrow = text.split("@")
    kind, *details = head.split(":")
    if kind not in KINDS:
        raise ConfigError(f"{kind!r} is not a kind of fault")
    read, needed = KINDS[kind]
    if len(details) != len(needed):
        raise ConfigError(f"write {':'.join((kind, *needed))}")
    members: dict[str, Any] = {"text": text, **read(*details)}
    for word in narrow:
        members |= narrowed(word, members)
    fault = Fault(**members)
    check_gpu(fault, gpus)
    check_call(fault.call, calls)
    return fault


def narrowed(word: str, known: Collection[str]) -> dict[str, Any]:
    """Read what follows an @: a GPU or a time."""
    members = {"gpu": gpu_index(word)} if word.startswith("GPU") else span(word)
    if twice := members.keys() & set(known):
        raise ConfigError(f"@{word}: {' and '.join(sorted(twice))} is said twice")
    return members


def span(word: str) -> dict[str, float]:
    """Read FROM or FROM-UNTIL."""
    since, dash, until = word.partition("-")
    since_s, until_s = seconds(since), seconds(until) if dash else inf
    if until_s <= since_s:
        raise ConfigError(f"{word!r} ends before it begins")
    return {"since_s": since_s, "until_s": until_s}


def seconds(word: str) -> float:
    """Read a time such as 50ms, 20s, 1.5m or 1h."""
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m|h)", word)
    if not found:
        raise ConfigError(f"{word!r} is not a time such as 50ms, 20s, 5m or 1h")
    return float(found[1]) * UNITS[found[2]]


def gpu_index(word: str) -> int:
    """Read GPU3."""
    if not re.fullmatch(r"GPU[0-9]{1,3}", word):
        raise ConfigError(f"{word!r} is not a GPU such as GPU0")
    return int(word[3:])


def check_gpu(fault: Fault, gpus: int) -> None:
    """Refuse a fault of a GPU that is not there, or of a call that is about none."""
    if fault.gpu is None:
        return
    if fault.call == INIT:
        raise ConfigError("it is about the whole driver: leave out @GPU")
    if fault.gpu >= gpus:
        raise ConfigError(f"there is no GPU{fault.gpu}; the last is GPU{gpus - 1}")


def check_call(call: str, calls: Collection[str]) -> None:
    """Refuse a function that nothing asks: the fault would never be seen."""
    if call == ANY or call in calls or re.fullmatch(r"field[0-9]{1,4}", call):
        return
    near = get_close_matches(call, calls, 1, 0.0)
    raise ConfigError(f"nothing asks for {call!r}; the nearest is {near[0]}")


def whole(low: int, high: int) -> Callable[[str], int]:
    """Make a reader of whole numbers from `low` to `high`."""

    def read(word: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", word) or not low <= int(word) <= high:
            raise ConfigError(f"write a whole number from {low} to {high}")
        return int(word)

    return read


def decimal(low: float, high: float) -> Callable[[str], float]:
    """Make a reader of numbers from `low` to `high`."""

    def read(word: str) -> float:
        try:
            value = float(word)
        except ValueError:
            value = inf
        if not isfinite(value) or not low <= value <= high:
            raise ConfigError(f"write a number from {low:g} to {high:g}")
        return value

    return read


def lost(gpu: str) -> dict[str, Any]:
    """Refuse every call about a GPU."""
    return {"call": ANY, "gpu": gpu_index(gpu), "code": Code.GPU_IS_LOST}


def refuse(code: str, call: str) -> dict[str, Any]:
    """Refuse a call with a code."""
    return {"call": call, "code": whole(1, 999)(code)}


OPTIONS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "gpus": ("gpus", whole(1, MOST_GPUS)),
    "seed": ("seed", whole(0, 10**18 - 1)),
    "load": ("load", decimal(0, 1)),
    "start": ("start_s", decimal(0, 1e12)),
}
"""By name: the member of Spec, and how it is read."""

KINDS: Mapping[str, tuple[Callable[..., dict[str, Any]], tuple[str, ...]]] = {
    "lost": (lost, ("GPU3",)),
    "unsupported": (lambda call: {"call": call, "code": Code.NOT_SUPPORTED}, ("CALL",)),
    "refuse": (refuse, ("CODE", "CALL")),
    "slow": (lambda call, time: {"call": call, "delay_s": seconds(time)}, ("CALL", "50ms")),
    "hang": (lambda call: {"call": call, "delay_s": inf}, ("CALL",)),
    "absent": (lambda: {"call": INIT, "code": Code.DRIVER_NOT_LOADED}, ()),
}
"""By kind of fault: how it is read, and what must be said."""
