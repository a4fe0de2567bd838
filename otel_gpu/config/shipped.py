"""The text of config/agent.yaml: every key with its default and its meaning."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from otel_gpu.config.flow import flow
from otel_gpu.config.keys import Key, keys
from otel_gpu.config.settings import Settings

_WIDTH = 96

_HEAD = """\
# Configuration of the otel-gpu agent: every key, with its default.
# `otel-gpu config check FILE` tells what is wrong with a file, `otel-gpu config show` what counts.
#
# Any value may be ${NAME} or ${NAME:-default} from the environment ($$ is a dollar sign; inside
# { } and [ ] it needs quotes). Every key is also a variable, OTEL_GPU_SAMPLING__FAST=2s or
# OTEL_GPU_PIPELINE__PROMETHEUS__ADDRESS=:9400. The order is: flag, OTEL_GPU_*, this file, OTEL_*
# (OTLP export and Resource attributes), default.
# Durations: 500ms, 15s, 1m, 2h or seconds. Sizes: 64MiB, 100MB or bytes.
"""

_EXAMPLES: dict[str, Any] = {
    "pipeline.otlp.endpoint": "http://collector:4318",
    "pipeline.file.path": "gpu.jsonl",
}
"""Where an example shows more than the default, or where there is none."""


def shipped_yaml() -> str:
    """Write the file. Pipeline parts that are not there by default are commented out."""
    return _HEAD + "".join(f"{line}\n" for line in _body())


def _body() -> Iterator[str]:
    there = {part.name for part in Settings().pipeline}
    for key in keys():
        part = key.path[1] if key.path[0] == "pipeline" and len(key.path) > 1 else ""
        first = len(key.path) == 1 or key.path[1:] == (part,)
        yield from ("",) if first else ()
        yield from _key(key, "" if not part or part in there else "# ")


def _key(key: Key, off: str) -> Iterator[str]:
    """Write a key under its meaning; `off` comments an example out, not the words above it."""
    depth = len(key.path) - 1
    lead = head = "  " * depth
    if key.path[0] == "pipeline" and depth == 1:
        head = f"{lead}{off}- "
    elif key.path[0] == "pipeline" and depth > 1:
        lead = head = f"  {off}{'  ' * depth}"
    yield from (f"{lead}# {line}" for line in _wrapped(key.description, _WIDTH - len(lead)))
    yield f"{head}{key.path[-1]}:{_value(key)}"


def _value(key: Key) -> str:
    if key.holds != "section":
        return f" {flow(_EXAMPLES.get(key.name, key.default))}"
    return "" if any(each.path[:-1] == key.path for each in keys()) else " {}"


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(text, width, break_long_words=False, break_on_hyphens=False)
