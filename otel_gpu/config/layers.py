"""Values laid over one another, and where each came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from otel_gpu.config.faults import Fault, KeyPath, dotted


@dataclass(frozen=True, slots=True)
class Assignment:
    """A value given outside the file: for which key, and by whom (a variable, or `flag`)."""

    path: tuple[str, ...]
    value: Any
    origin: str


@dataclass(slots=True)
class Layers:
    """The values so far. Mappings are merged key by key; lists and single values are replaced."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[KeyPath, str] = field(default_factory=dict)

    def put(self, path: KeyPath, value: Any, origin: str) -> None:
        """Set a value. Where something else than a mapping is in the way, that is the fault."""
        holder = self._holder(path)
        if holder is None:
            return
        if isinstance(value, Mapping) and isinstance(holder.get(path[-1]), dict):
            for key, each in value.items():
                self.put((*path, key), each, origin)
            return
        self.origins = {at: who for at, who in self.origins.items() if at[: len(path)] != path}
        holder[path[-1]] = deepcopy(value)  # it may be changed here, and is the caller's
        self._sign(path, value, origin)

    def fill(self, path: KeyPath, value: Any, origin: str) -> None:
        """Set what nobody has set: of a mapping, the keys that are not there."""
        if isinstance(value, Mapping):
            for key, each in value.items():
                self.fill((*path, key), each, origin)
        elif path not in self.origins:
            self.put(path, value, origin)

    def whence(self, path: KeyPath) -> str:
        """Tell where a value was given, or else what it would have stood in."""
        while path and path not in self.origins:
            path = path[:-1]
        return self.origins.get(path, "")

    def pipeline(self) -> list[Any] | None:
        """Give the parts, the default one where nobody named any; None if they are no list."""
        if self.values.get("pipeline") is None:
            named = ("pipeline",) in self.origins
            self.put(("pipeline",), [] if named else [{"prometheus": {}}], self.whence_pipeline())
        pipeline = self.values["pipeline"]
        return pipeline if isinstance(pipeline, list) else None

    def whence_pipeline(self) -> str:
        """Tell who named the parts of the pipeline."""
        return self.origins.get(("pipeline",), "default")

    def parts(self, name: str) -> list[int]:
        """Find the parts of the pipeline that have this name."""
        parts = enumerate(self.pipeline() or [])
        return [at for at, part in parts if isinstance(part, dict) and name in part]

    def append(self, name: str, origin: str) -> int:
        """Add a part to the end of the pipeline, which is a list, and give its index."""
        pipeline = self.values["pipeline"]
        pipeline.append({name: {}})
        self._sign(("pipeline", len(pipeline) - 1), pipeline[-1], origin)
        return len(pipeline) - 1

    def _holder(self, path: KeyPath) -> dict[Any, Any] | None:
        """Give the mapping that holds a key, made where there is none yet."""
        holder: Any = self.values
        for at in path[:-1]:
            holder = _inside(holder, at)
        return holder if isinstance(holder, dict) else None

    def _sign(self, path: KeyPath, value: Any, origin: str) -> None:
        self.origins[path] = origin
        for key, each in _below(value):
            self._sign((*path, key), each, origin)


def _below(value: Any) -> Iterable[tuple[str | int, Any]]:
    if isinstance(value, Mapping):
        return value.items()
    return enumerate(value) if isinstance(value, list | tuple) else ()


def _inside(holder: Any, at: str | int) -> Any:
    if isinstance(holder, dict):
        if holder.get(at) is None:
            holder[at] = {}
        return holder[at]
    return holder[at] if isinstance(holder, list) and isinstance(at, int) else None


def assign(layers: Layers, given: Assignment) -> Fault | None:
    """Lay an assignment over the rest; a part of the pipeline goes by its name."""
    if given.path[0] != "pipeline" or len(given.path) == 1:
        layers.put(given.path, given.value, given.origin)
        return None
    return _assign_part(layers, given)


def _assign_part(layers: Layers, given: Assignment) -> Fault | None:
    if layers.pipeline() is None:
        return None  # which is a fault already
    name = given.path[1]
    found = layers.parts(name) or [layers.append(name, given.origin)]
    if len(found) > 1:
        several = f"there are {len(found)} {name} parts"
        message = f"{several}; set it in the file, or set pipeline as a whole"
        return Fault(given.origin, dotted(given.path), message)
    layers.put(("pipeline", found[0], *given.path[1:]), given.value, given.origin)
    return None
