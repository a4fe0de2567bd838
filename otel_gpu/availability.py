"""What the configuration can say and this version cannot do: refused, never silently ignored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from otel_gpu.config import Settings
from otel_gpu.model import ConfigError

ABSENT: dict[str, frozenset[Any]] = {}
"""Keys that have no effect yet, and the values by which nothing is asked of them."""

ABSENT_OPTIONS: dict[str, dict[str, frozenset[Any]]] = {
    "prometheus": {
        "names": frozenset({("otel",)}),
        "counters_file": frozenset({None}),
    },
}
"""The same for the parts of the pipeline."""


def demand(settings: Settings) -> None:
    """Raise ConfigError with a line for each thing that was asked for and is not there."""
    if lines := list(lacking(settings)):
        raise ConfigError("\n".join(lines))


def lacking(settings: Settings) -> Iterator[str]:
    """Name what this version cannot do."""
    yield from refused(settings, ABSENT, "")
    for place, part in enumerate(settings.pipeline):
        where = f"pipeline[{place}].{part.name}"
        yield from refused(part.options, ABSENT_OPTIONS.get(part.name, {}), f"{where}.")


def refused(section: Any, absent: dict[str, frozenset[Any]], prefix: str) -> Iterator[str]:
    """Compare the keys of a section with the values that ask for nothing."""
    for key, harmless in absent.items():
        value = section
        for name in key.split("."):
            value = getattr(value, name)
        if value not in harmless:
            yield f"{prefix}{key}: {value!r} has no effect in this version; leave it out"
