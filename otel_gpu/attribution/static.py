"""Owners from a file: for machines whose GPUs are given away by hand, and for tests.

The file is YAML: a list of `gpu` (UUID, index or PCI address), `attributes` that stand on each
point, and `resource` attributes that only the owner's Resource carries:

    - gpu: GPU-8b1f...
      attributes: {k8s.namespace.name: research, k8s.pod.name: train-0}
      resource: {k8s.pod.uid: 7f6c...}
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from otel_gpu.attribution import Claims, Health, View
from otel_gpu.config import values
from otel_gpu.model import Attributes, AttributeValue, Device, Owner

NAME = "static"
MOST_BYTES = 4 << 20


class Entry(BaseModel):
    """One owner of one GPU, as the file writes it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    gpu: Annotated[str | int, BeforeValidator(values.gpu)]
    attributes: dict[str, str | int | bool]
    resource: dict[str, str | int | bool] = {}

    def names(self, device: Device) -> bool:
        """Whether this entry is about that GPU, or about the GPU that a MIG instance is part of."""
        return self.gpu in {device.uuid, device.parent, device.index, device.pci_address}

    def owner(self) -> Owner:
        """Give the owner that the entry describes."""
        return Owner(flat(self.attributes), flat(self.resource))


ENTRIES = TypeAdapter(list[Entry])


class StaticSource:
    """Reads the file again when it changes; keeps the last good answer when it cannot be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, int, int] | None = None
        self._entries: tuple[Entry, ...] = ()
        self._health = Health(NAME, up=False, reason="unread", detail=f"{path} was not read yet")

    def claims(self, view: View) -> Claims:
        """Give the owners of these GPUs, several for a GPU that the file names several times."""
        self._reread()
        found = {
            device.uuid: tuple(entry.owner() for entry in self._entries if entry.names(device))
            for device in view.devices
        }
        return Claims({uuid: owners for uuid, owners in found.items() if owners})

    def health(self) -> Health:
        """Say whether the file was read."""
        return self._health

    def close(self) -> None:
        """Hold nothing."""

    def _reread(self) -> None:
        try:
            status = self.path.stat()
            stamp = (status.st_mtime_ns, status.st_ino, status.st_size)
            if stamp != self._stamp:
                self._judge(status)
                self._entries = parsed(self.path.read_text(encoding="utf-8"))
                self._stamp = stamp
            self._health = Health(NAME, up=True)
        except OSError as error:
            self._fail("unreadable", f"{self.path}: {error.strerror}")
        except (yaml.YAMLError, ValueError) as error:  # YAML raises both: `2001-02-31` is no date
            self._fail("invalid", f"{self.path}: {first_line(error)}")

    def _judge(self, status: os.stat_result) -> None:
        """Raise ValueError for what would take for ever, or all memory, to read."""
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("is not a file")
        if status.st_size > MOST_BYTES:
            raise ValueError(f"is over {MOST_BYTES >> 20} MiB")

    def _fail(self, reason: str, detail: str) -> None:
        self._health = Health(NAME, up=False, reason=reason, detail=detail)


class _Loader(yaml.SafeLoader):
    """Without aliases: a few lines of them can stand for any amount of memory."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Read one value."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias (*name) is not supported; write the value out")
        return super().compose_node(parent, index)


def parsed(text: str) -> tuple[Entry, ...]:
    """Read the file's text; raises yaml.YAMLError or pydantic's ValidationError."""
    data: Any = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader, and safer
    return tuple(ENTRIES.validate_python([] if data is None else data))


def flat(attributes: Mapping[str, AttributeValue]) -> Attributes:
    """Give attributes as the model keeps them."""
    return tuple(attributes.items())


def first_line(error: Exception) -> str:
    """Say what is wrong in one line: the place and the fault."""
    if isinstance(error, ValidationError):
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"])) or "the file"
        return f"{place}: {fault['msg'].removeprefix('Value error, ')}"
    return " ".join(str(error).split())
