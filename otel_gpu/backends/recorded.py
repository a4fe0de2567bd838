"""Replays a machine that was recorded, and records one. The file's form: `capture.py`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from otel_gpu.backends.capture import Capture, Told, load, plain, write
from otel_gpu.backends.masking import masked
from otel_gpu.model import Answer, Backend, Code, Device, Event, Query, System

__all__ = ["RecordedBackend", "record", "write"]

RINGS: Mapping[str, int] = {
    "nvmlDeviceGetSamples": 1,
    "nvmlDeviceGetProcessUtilization": 0,
    "nvmlDeviceGetProcessesUtilizationInfo": 0,
}
"""Queries about a ring buffer, and which argument says since when (Unix microseconds)."""


class RecordedBackend:
    """Answers as a recorded machine did.

    The n-th time that a query is asked it gets its n-th answer, and the last one from then on;
    `open` begins anew. A query that is not in the recording is code 3 (not supported), a GPU that
    is not in it is code 28 (GPU not found). A ring buffer gives what is newer than it was asked
    for, and code 6 (not found) when nothing is, as the driver does.
    """

    def __init__(self, path: str) -> None:
        self.on_call: Callable[[str, str], None] = lambda _uuid, _call: None
        self._path = Path(path)
        self._told: Mapping[str, Told] = {}
        self._asked: Counter[tuple[str, Query]] = Counter()

    def open(self, exclude: frozenset[str] = frozenset()) -> System:
        """Read the file. Raises BackendError when it cannot be read or is no recording."""
        capture = load(self._path)
        devices = tuple(one for one in capture.system.devices if not names(one) & exclude)
        self._told = {device.uuid: capture.told[device.uuid] for device in devices}
        self._asked.clear()
        return replace(capture.system, devices=devices)

    def ask(self, uuid: str, queries: Sequence[Query]) -> list[Answer]:
        """Give the next answer to each query."""
        told = self._told.get(uuid)
        if told is None:
            return [Answer(Code.GPU_NOT_FOUND)] * len(queries)
        return [self._answer(uuid, told, query) for query in queries]

    def events(self) -> list[Event]:
        """Give nothing: a recording holds answers, not what was told unasked."""
        return []

    def close(self) -> None:
        """Forget the recording."""
        self._told = {}

    def _answer(self, uuid: str, told: Told, query: Query) -> Answer:
        self.on_call(uuid, query.call)
        whole, since_us = timeless(query)
        answers = told.get(whole)
        if not answers:
            return Answer(Code.NOT_SUPPORTED)
        turn = self._asked[uuid, whole]
        self._asked[uuid, whole] += 1
        return newer(answers[min(turn, len(answers) - 1)], since_us)


def record(
    backend: Backend,
    system: System,
    questions: Mapping[str, Sequence[Query]],
    *,
    label: str = "",
    sweeps: int = 1,
    pause_s: float = 0.0,
    recorded: date | None = None,
) -> dict[str, Any]:
    """Ask an open backend everything, `sweeps` times, and give the contents of a recording.

    `system` is what its `open` gave, `questions` are by UUID, `pause_s` seconds lie between two
    sweeps, `recorded` is the day that is written down (today). UUIDs, serial numbers, process ids
    and their like are replaced (see `masking.py`). `write` makes a file of the result.
    """
    told: dict[str, dict[Query, list[Answer]]] = {uuid: {} for uuid in questions}
    for sweep in range(sweeps):
        time.sleep(pause_s if sweep else 0)
        for uuid, queries in questions.items():
            whole = [timeless(query)[0] for query in queries]
            for query, answer in zip(whole, backend.ask(uuid, whole), strict=True):
                told[uuid].setdefault(query, []).append(answer)
    return masked(
        plain(Capture(system, told, label, (recorded or datetime.now(UTC).date()).isoformat()))
    )


def names(device: Device) -> frozenset[str]:
    """Give every name under which `open` may leave a device out."""
    return frozenset({device.uuid, device.parent, str(device.index)})


def timeless(query: Query) -> tuple[Query, int]:
    """Take out of a query since when it asks: a recording holds a ring buffer as a whole."""
    place = RINGS.get(query.call)
    if place is None:
        return query, 0
    whole = (*query.args[:place], 0, *query.args[place + 1 :])
    return Query(query.call, whole), query.args[place]


def newer(answer: Answer, since_us: int) -> Answer:
    """Leave out of a ring buffer what was asked for before."""
    if not since_us or not answer.ok:
        return answer
    left = [entry for entry in answer.value if stamp(entry) > since_us]
    return Answer(Code.SUCCESS, left) if left else Answer(Code.NOT_FOUND)


def stamp(entry: Any) -> int:
    """Read the time (Unix microseconds) of an entry: a pair, or a process's struct."""
    return int(entry["timeStamp"] if isinstance(entry, dict) else entry[0])
