"""Takes out of a recording what says whose machine it was, and keeps what belongs together.

The same UUID, serial number or process is the same stand-in wherever it stands in the recording.
Nothing (an empty text, 0, bytes that are all 0) says that there is no identity, and stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

UUID = re.compile(r"(GPU|MIG)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

STAND_INS: Mapping[str, Callable[[int], Any]] = {
    "GPU": "GPU-{0:08x}-0000-4000-8000-{0:012x}".format,
    "MIG": "MIG-{0:08x}-0000-4000-8000-{0:012x}".format,
    "serial": "{:013}".format,
    "pid": (1000).__add__,
    "process": "process-{}".format,
    "host": "host-{}".format,
    "number": int,
}
"""By kind: what the n-th original becomes."""

ANSWERS: Mapping[str, str] = {
    "nvmlDeviceGetSerial": "serial",
    "nvmlDeviceGetHostname_v1": "host",
    "nvmlDeviceGetPdi": "number",
}
"""Queries whose whole value is an identity, and of which kind."""

MEMBERS: Mapping[str, str] = {
    "serial": "serial",
    "pid": "pid",
    "clusterUuid": "number",
    "ibGuid": "number",
    "chassisSerialNumber": "number",
}
"""Members of structs, and of `Device`, that are an identity, and of which kind."""


class Mask:
    """Stand-ins, numbered by kind in the order in which their originals are met."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[Any, int]] = {}

    def answers(self, query: str, told: list[list[Any]]) -> list[list[Any]]:
        """Mask the answers to one query, each [code] or [code, value]."""
        kind = ANSWERS.get(query)
        return [
            [code, *(self._stand_in(kind, one) if kind else self.value(one) for one in value)]
            for code, *value in told
        ]

    def value(self, value: Any) -> Any:
        """Mask what stands anywhere inside a value."""
        if isinstance(value, str):
            return UUID.sub(lambda found: str(self._stand_in(found[1], found[0])), value)
        if isinstance(value, list | tuple):
            return [self.value(element) for element in value]
        if isinstance(value, dict):
            return {
                self.value(name): self._member(name, inner, value) for name, inner in value.items()
            }
        return value

    def _member(self, name: str, value: Any, struct: Mapping[str, Any]) -> Any:
        kind = "process" if name == "name" and "pid" in struct else MEMBERS.get(name)
        return self._stand_in(kind, value) if kind else self.value(value)

    def _stand_in(self, kind: str, original: Any) -> Any:
        listed = isinstance(original, list | tuple)
        if not original or (listed and not any(original)):
            return original
        numbers = self._numbers.setdefault(kind, {})
        number = numbers.setdefault(tuple(original) if listed else original, len(numbers) + 1)
        # An identity in bytes keeps its length.
        return [*[0] * (len(original) - 1), number] if listed else STAND_INS[kind](number)


def masked(data: Mapping[str, Any]) -> dict[str, Any]:
    """Mask the contents of a recording (see `capture.py`)."""
    mask = Mask()
    for entry in data["devices"]:
        mask.value(entry["device"]["uuid"])  # so that they count up in the order of the file
    devices = [
        {
            "device": mask.value(entry["device"]),
            "answers": {text: mask.answers(text, told) for text, told in entry["answers"].items()},
        }
        for entry in data["devices"]
    ]
    return {**data, "devices": devices, "refused": mask.value(data["refused"])}
