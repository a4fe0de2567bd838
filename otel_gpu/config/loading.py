"""From file, environment and flags to settings, or to every fault at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from otel_gpu.config import standard
from otel_gpu.config.advice import advice
from otel_gpu.config.document import Document, read
from otel_gpu.config.environment import decoded, from_environment, from_flags
from otel_gpu.config.faults import Fault, KeyPath, dotted, in_reading_order
from otel_gpu.config.layers import Layers, assign
from otel_gpu.config.masks import shown
from otel_gpu.config.refusals import faults
from otel_gpu.config.settings import Settings
from otel_gpu.model import ConfigError

PARTS = "otel_gpu.pipeline"
"""The entry point group of pipeline parts."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings that are in order.

    `origins` says for every value, by its key with dots (`pipeline[0].prometheus.address`), who
    gave it: `flag`, the name of a variable, `FILE:LINE` or `default`. `warnings` are not faults.
    """

    settings: Settings
    origins: Mapping[str, str]
    warnings: tuple[Fault, ...] = ()


def load(
    path: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Loaded:
    """Read the configuration: the file at `path` (None: no file), variables and flags.

    For each key a flag comes first, then `OTEL_GPU_*`, the file, `OTEL_*`, the default. Mappings
    are merged key by key; lists are taken from one place. `OTEL_*` are the variables of
    OpenTelemetry's specification for Resource attributes and OTLP export. Where an OTLP endpoint is
    in the environment and nobody names the parts of the pipeline (neither the file, nor
    `OTEL_GPU_PIPELINE`, nor a flag), an `otlp` part is added beside the default `prometheus` part.

    The environment is what is given here, never `os.environ`. Flags are by key: `sampling.fast`,
    `pipeline.prometheus.address`. Raises ConfigError with a line for every fault.
    """
    outcome = _resolve(path, environ or {}, flags or {})
    if isinstance(outcome, Loaded):
        return outcome
    raise ConfigError("\n".join(map(str, outcome)))


def check(
    path: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> list[Fault]:
    """Give every fault that `load` would raise; none is an empty list."""
    outcome = _resolve(path, environ or {}, flags or {})
    return [] if isinstance(outcome, Loaded) else outcome


def _resolve(
    path: Path | None, environ: Mapping[str, str], flags: Mapping[str, object]
) -> Loaded | list[Fault]:
    environ, undecoded = decoded(environ)
    layers, found = _from_file(path, environ)
    found += undecoded
    for given in (*from_environment(environ), *from_flags(flags)):
        fault = given if isinstance(given, Fault) else assign(layers, given)
        found += [fault] if fault else []
    warnings = [*standard.resource(layers, environ), *standard.otlp(layers, environ)]
    settings = _validated(layers, found)
    if settings is None or found:
        return in_reading_order(found)
    whence = layers.origins
    warnings += [Fault(whence.get(at, "default"), dotted(at), say) for at, say in advice(settings)]
    origins = {dotted(at): whence.get(at, "default") for at, _ in leaves(settings)}
    return Loaded(settings, origins, tuple(warnings))


def _from_file(path: Path | None, environ: Mapping[str, str]) -> tuple[Layers, list[Fault]]:
    if path is None:
        return Layers(), []
    document = read(path, environ)
    values = document.values
    if isinstance(values, dict):
        origins = {at: f"{document.name}:{line}" for at, line in document.lines.items()}
        return Layers(values, origins), document.faults + _versionless(document, values)
    if document.faults:
        return Layers(), document.faults
    if values is None:
        return Layers(), _versionless(document, {})
    message = f"{shown((), values)} is not a configuration; begin with version: 1"
    return Layers(), [Fault(f"{document.name}:1", "", message)]


def _versionless(document: Document, values: Mapping[str, Any]) -> list[Fault]:
    if "version" in values:
        return []
    return [Fault(f"{document.name}:1", "version", "is missing; begin the file with version: 1")]


def _validated(layers: Layers, found: list[Fault]) -> Settings | None:
    """Make the settings; what is wrong is added to `found`, once for each key."""
    try:
        return Settings.model_validate(layers.values, context={"parts": _installed})
    except ValidationError as error:
        known = {(fault.where, fault.path) for fault in found}
        refused = faults(error, layers.whence)
        found += [each for each in refused if (each.where, each.path) not in known]
        return None


def _installed() -> set[str]:
    return {each.name for each in entry_points(group=PARTS)}


def leaves(settings: Settings) -> Iterator[tuple[KeyPath, Any]]:
    """Give every value in the file's words, with its key path, in the file's order."""
    yield from _leaves(settings.model_dump(mode="json"), ())


def _leaves(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _leaves(each, (*path, key))
    elif path == ("pipeline",):
        for at, each in enumerate(value):
            yield from _leaves(each, (*path, at))
    else:
        yield path, value
