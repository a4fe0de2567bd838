"""What agent and worker say to each other, as plain values.

The agent says one of these, and the worker answers it before the next:

- `("open", [UUID, ...])`, leaving those out: `("opened", system)`, or
  `("refused", code, text, remedy)` when there is no usable driver.
- `("ask", [(UUID, [(call, args), ...]), ...])`: for each GPU, as soon as it is read,
  `("answers", UUID, read_s, [(code, value), ...])`; at the end
  `("done", [event, ...])` with what the driver told meanwhile.
- `("close",)`: `("closed",)`, with every handle released.

Only exact built-in types travel: an enum's member or a named tuple becomes what it is made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from otel_gpu.model import Answer, Device, Event, Query, Refused, System

Questions = Sequence[tuple[str, Sequence[Query]]]
"""What is to be asked: for each UUID its queries, in order."""


@dataclass(frozen=True, slots=True)
class Answered:
    """One GPU's answers, in the order of its queries, and when they were read.

    `read_s` is monotonic seconds (the same clock in every process of the machine), taken right
    before the GPU's first call.
    """

    uuid: str
    read_s: float
    answers: list[Answer]


def plain_questions(questions: Questions) -> list[tuple[str, list[tuple[str, tuple[int, ...]]]]]:
    """Make what follows `("ask", ...)`."""
    return [(uuid, [(query.call, query.args) for query in queries]) for uuid, queries in questions]


def plain_answers(answers: Sequence[Answer]) -> list[tuple[int, Any]]:
    """Make the last part of `("answers", ...)`."""
    return [(int(answer.code), answer.value) for answer in answers]


def plain_events(events: Sequence[Event]) -> list[tuple[Any, ...]]:
    """Make the last part of `("done", ...)`."""
    return [tuple(event._replace(kind=str(event.kind))) for event in events]


def answered(message: tuple[Any, ...]) -> Answered:
    """Read an `("answers", ...)` message."""
    _, uuid, read_s, answers = message
    return Answered(uuid, read_s, [Answer(code, value) for code, value in answers])


def plain_system(system: System) -> dict[str, Any]:
    """Make the second part of `("opened", system)`."""
    refused = [(gpu.index, int(gpu.code), gpu.uuid) for gpu in system.refused]
    return asdict(system) | {"refused": refused}


def system(plain: Mapping[str, Any]) -> System:
    """Read what `plain_system` made."""
    devices = tuple(Device(**device) for device in plain["devices"])
    refused = tuple(Refused(*gpu) for gpu in plain["refused"])
    return System(**{**plain, "devices": devices, "refused": refused})
