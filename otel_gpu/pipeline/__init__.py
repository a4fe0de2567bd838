"""The ways out: each an OpenTelemetry reader, made from its options and what the agent offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Protocol, cast, runtime_checkable

from opentelemetry.sdk.metrics.export import MetricReader
from opentelemetry.sdk.resources import Resource

from otel_gpu.model import Attributes, ConfigError, Snapshot

GROUP = "otel_gpu.pipeline"
"""The entry point group: a name is a key of `pipeline:`, its object a `Factory`."""

BUILT_IN: Mapping[str, str] = {
    "prometheus": "otel_gpu.pipeline.prometheus",
    "otlp": "otel_gpu.pipeline.otlp",
    "file": "otel_gpu.pipeline.file",
    "console": "otel_gpu.pipeline.console",
}
"""The parts that need no installed entry point, so that a source tree works as it is."""


def _nothing_wrong() -> str | None:
    return None


def _empty() -> Mapping[str, Any]:
    return {}


Record = Callable[[str, float, Attributes], None]
"""Takes a value of one of the agent's own histograms: the metric's name, the value in its unit."""


def not_recorded(metric: str, value: float, attributes: Attributes) -> None:
    """Record nothing: for whoever has no agent around him."""
    del metric, value, attributes


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the agent offers to a part of the pipeline; any thread may call what is in it.

    `healthy`, `ready` and `fresh` give None, or in one sentence what is wrong: that the agent's own
    loops tick; that it is configured and serves; that readings are not stale. They are asked on a
    server's event loop, so they must not wait for anything. `record` takes a value of one of the
    agent's own histograms: the metric's name, the value in its unit, attributes.
    """

    version: str = ""
    node: str = ""
    snapshot: Callable[[], Snapshot] = Snapshot
    resource: Callable[[], Resource] = Resource.get_empty  # the node's
    status: Callable[[], Mapping[str, Any]] = _empty
    healthy: Callable[[], str | None] = _nothing_wrong
    ready: Callable[[], str | None] = _nothing_wrong
    fresh: Callable[[], str | None] = _nothing_wrong
    record: Record = not_recorded
    predecessor: MetricReader | None = None


@runtime_checkable
class HandsOver(Protocol):
    """A reader that has what only one can have at a time: an address, a queue.

    Its successor is made while it works, with it as `Context.predecessor`, and may take a share in
    that thing, but leaves it alone until `hand_over`. If the new configuration is refused in the
    end, the successor is shut down and that never comes.
    """

    def hand_over(self, successor: MetricReader) -> None:
        """Let the successor, which a MeterProvider knows by now, have it."""


@runtime_checkable
class Vital(Protocol):
    """A reader that can tell whether its own loops move; what they are for may be down."""

    def ailment(self) -> str | None:
        """Say in one sentence what does not move, if something does not. Never waits."""


Factory = Callable[[Any, Context], MetricReader]
"""Makes a reader from a part's options; raises ConfigError for options that cannot work.

The reader runs by itself at once, and does nothing until a MeterProvider has registered it.
"""


def load(name: str) -> Factory:
    """Give the factory of a pipeline part. Raises ConfigError when no such part is installed."""
    if name in BUILT_IN:
        return cast("Factory", import_module(BUILT_IN[name]).build)
    installed = {point.name: point for point in entry_points(group=GROUP)}
    if name not in installed:
        known = ", ".join(sorted({*BUILT_IN, *installed}))
        raise ConfigError(f"pipeline: there is no part {name!r}: use one of {known}")
    return cast("Factory", installed[name].load())
