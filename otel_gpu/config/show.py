"""The effective configuration as YAML, each value with who gave it, secrets masked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from otel_gpu.config.faults import KeyPath, dotted
from otel_gpu.config.flow import flow
from otel_gpu.config.loading import Loaded
from otel_gpu.config.masks import masked
from otel_gpu.config.references import literal

_COLUMN = 48

Line = tuple[str, KeyPath | None]
"""A line, and the key path of the value in it, if there is one."""


def show(loaded: Loaded) -> str:
    """Write every setting; the text is YAML that `load` reads again, but for what is masked."""
    lines = _lines(loaded.settings.model_dump(mode="json"), (), "")
    return "".join(f"{_with_origin(line, path, loaded)}\n" for line, path in lines)


def _with_origin(line: str, path: KeyPath | None, loaded: Loaded) -> str:
    if path is None:
        return line
    return f"{line:{_COLUMN}}  # {loaded.origins[dotted(path)]}"


def _lines(values: dict[str, Any], path: KeyPath, indent: str) -> Iterator[Line]:
    for key, value in values.items():
        at, head = (*path, key), f"{indent}{flow(key)}:"
        if at == ("pipeline",):
            yield head, None
            yield from _parts(value, at, f"{indent}  ")
        elif isinstance(value, dict) and value:
            yield head, None
            yield from _lines(value, at, f"{indent}  ")
        else:
            yield f"{head} {flow(_literal(masked(at, value)))}", at


def _literal(value: Any) -> Any:
    """Keep `load` from taking a text for a reference; in keys it looks for none."""
    if isinstance(value, dict):
        return {key: _literal(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_literal(each) for each in value]
    return literal(value) if isinstance(value, str) else value


def _parts(values: list[dict[str, Any]], path: KeyPath, indent: str) -> Iterator[Line]:
    for index, value in enumerate(values):
        lines = _lines(value, (*path, index), f"{indent}  ")
        first, at = next(lines)
        yield f"{indent}- {first.lstrip()}", at
        yield from lines
