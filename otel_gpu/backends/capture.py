"""The file of a recorded machine: its form, how it is read, how it is written.

    {"format": 1, "label": TEXT, "recorded": DATE,
     "system": {driver_version, nvml_version, cuda_version, library},
     "devices": [{"device": {the members of Device},
                  "answers": {"nvmlDeviceGetPowerUsage": [[0, 689380], [0, 690000]],
                              "nvmlDeviceGetFieldValues(186, 0)": [[0, 683069]],
                              "nvmlDeviceGetFanSpeed": [[3]]}}],
     "refused": [{index, code, uuid}]}

An answer is [code] or [code, value]. The n-th time that a query is asked it gets its n-th answer,
and the last one from then on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from otel_gpu.model import Answer, BackendError, Code, Device, OtelGpuError, Query, Refused, System

FORMAT = 1
QUERY = re.compile(r"(\w+)(?:\((-?\d+(?:, -?\d+)*)\))?", re.ASCII)
REMEDY = "Record the machine again: otel-gpu record FILE"

Told = Mapping[Query, list[Answer]]
"""What one GPU was asked, and what it answered, one answer after the other."""


@dataclass(frozen=True, slots=True)
class Capture:
    """A recorded machine. `told` is by UUID; `recorded` is a date as ISO 8601 writes it."""

    system: System
    told: Mapping[str, Told]
    label: str = ""
    recorded: str = ""


class FormError(OtelGpuError):
    """The contents are not those of a recording: where, and what is wrong there."""


def parse_query(text: str) -> Query:
    """Read what `str(query)` writes. Raises ValueError for anything else."""
    found = QUERY.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is no query, which is CALL or CALL(1, 2)")
    return Query(found[1], tuple(map(int, found[2].split(", "))) if found[2] else ())


def load(path: Path) -> Capture:
    """Read a recording. Raises BackendError, which says what is wrong and where."""
    try:
        return read(json.loads(path.read_text()))
    except OSError as error:
        raise BackendError(Code.NOT_FOUND, f"recording {path}: {error.strerror}") from error
    except (ValueError, FormError) as error:
        text = f"recording {path}: {error}"
        raise BackendError(Code.INVALID_ARGUMENT, text, REMEDY) from error


def read(data: Any) -> Capture:
    """Understand the contents of a recording. Raises FormError, which names the place."""
    with at("the file"):
        if data["format"] != FORMAT:
            raise ValueError(
                f"format {data['format']!r} is not {FORMAT}, which is what is read here"
            )
        facts, entries, refused = data["system"], data["devices"], data["refused"]
    devices: list[Device] = []
    told: dict[str, Told] = {}
    for place, entry in numbered("devices", entries):
        with at(place):
            device = Device(**entry["device"])
            told[device.uuid] = dict(read_query(*item) for item in entry["answers"].items())
            devices.append(device)
    with at("refused"):
        gone = tuple(Refused(**one) for one in refused)
    with at("system"):
        system = System(**facts, devices=tuple(devices), refused=gone)
    return Capture(system, told, data.get("label", ""), data.get("recorded", ""))


def read_query(text: str, answers: Any) -> tuple[Query, list[Answer]]:
    """Understand one query and its answers. Raises FormError, which names the query."""
    with at(text):
        if not answers:
            raise ValueError("there is no answer")
        return parse_query(text), [Answer(*answer) for answer in answers]


def numbered(place: str, entries: Any) -> Iterator[tuple[str, Any]]:
    """Go through a list, naming each place in it. Raises FormError when it is none."""
    with at(place):
        named = [(f"{place}[{number}]", entry) for number, entry in enumerate(entries)]
    yield from named


@contextmanager
def at(place: str) -> Iterator[None]:
    """Say where the contents are not what they should be."""
    try:
        yield
    except FormError as error:
        raise FormError(f"{place}: {error}") from error
    except KeyError as error:
        raise FormError(f"{place}: {error} is missing") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise FormError(f"{place}: {error}") from error


def plain(capture: Capture) -> dict[str, Any]:
    """Make the contents of a recording out of what it means."""
    facts = asdict(capture.system)
    del facts["unheard"]  # a recording holds answers, not what is told unasked
    refused = [{**one, "code": int(one["code"])} for one in facts.pop("refused")]
    devices = [
        {"device": device, "answers": plain_told(capture.told.get(device["uuid"], {}))}
        for device in facts.pop("devices")
    ]
    head = {"format": FORMAT, "label": capture.label, "recorded": capture.recorded}
    return {**head, "system": facts, "devices": devices, "refused": refused}


def plain_told(told: Told) -> dict[str, list[list[Any]]]:
    """Write queries as texts; an answer that repeats to the end stands there once."""
    return {str(query): unrepeated([*map(plain_answer, told[query])]) for query in told}


def plain_answer(answer: Answer) -> list[Any]:
    """Write [code, value], or [code] where there is no value."""
    return [int(answer.code), answer.value] if answer.ok else [int(answer.code)]


def unrepeated(answers: list[list[Any]]) -> list[list[Any]]:
    """Leave out, from the end, what a replay repeats by itself."""
    end = len(answers)
    while end > 1 and answers[end - 1] == answers[end - 2]:
        end -= 1
    return answers[:end]


def write(path: Path, data: Mapping[str, Any]) -> None:
    """Write the contents of a recording to a file."""
    path.write_text(render(data) + "\n")


def render(data: Any, margin: str = "") -> str:
    """Write JSON so that a diff shows one query a line: what holds no names stays on its line."""
    inner = margin + " "
    if data and isinstance(data, Mapping):
        items = (f"{json.dumps(name)}: {render(value, inner)}" for name, value in data.items())
        return block("{", items, "}", margin)
    if data and isinstance(data, list) and all(isinstance(one, Mapping) for one in data):
        return block("[", (render(one, inner) for one in data), "]", margin)
    return json.dumps(data)


def block(opening: str, lines: Iterable[str], closing: str, margin: str) -> str:
    """Put each line on one of its own, further in than what is around them."""
    body = ",\n".join(f"{margin} {line}" for line in lines)
    return f"{opening}\n{body}\n{margin}{closing}"
