"""Every key there is: its path, its environment variable, its default and its meaning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from otel_gpu.config.fields import defaults
from otel_gpu.config.parts import Part
from otel_gpu.config.settings import Settings

PREFIX = "OTEL_GPU_"


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the configuration.

    `path` is `("sampling", "fast")`; an option of a pipeline part goes by the part's name,
    `("pipeline", "otlp", "endpoint")`. `default` is in the file's words ("1s"), `required` says
    that there is none. `holds` is `section` (keys below it), `collection` (takes a list or a
    mapping) or `value`.
    """

    path: tuple[str, ...]
    description: str
    default: Any
    required: bool
    holds: str

    @property
    def name(self) -> str:
        """The path with dots: `sampling.fast`."""
        return ".".join(self.path)

    @property
    def variable(self) -> str:
        """The environment variable that sets it: `OTEL_GPU_SAMPLING__FAST`."""
        return PREFIX + "__".join(self.path).upper()


@cache
def keys() -> tuple[Key, ...]:
    """Give every key in the order of the file, sections before what they hold."""
    return tuple(_keys(Settings, ()))


def _keys(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[Key]:
    written = {} if model is Part else defaults(model)
    for name, info in model.model_fields.items():
        at = (*path, name)
        below = Part if at == ("pipeline",) else section_of(info)
        text = info.description or (below.__doc__ if below else "") or ""
        holds = "section" if below else "collection" if _collects(info.annotation) else "value"
        yield Key(at, " ".join(text.split()), written.get(name), info.is_required(), holds)
        if below:
            yield from _keys(below, at)


def section_of(info: FieldInfo) -> type[BaseModel] | None:
    """Give the model under a field, if the field is a section or a part."""
    kinds = (info.annotation, *get_args(info.annotation))
    return next((k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)), None)


def _collects(kind: Any) -> bool:
    return get_origin(kind) in (tuple, dict) or any(_collects(each) for each in get_args(kind))
