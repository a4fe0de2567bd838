"""What a running agent exchanges when its configuration changes, and what becomes of that."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from queue import Empty, SimpleQueue

from opentelemetry.sdk.resources import Resource

from otel_gpu import __version__
from otel_gpu.config import Settings
from otel_gpu.events.export import Outlet
from otel_gpu.events.kernel_log import KernelLog
from otel_gpu.events.watch import kernel_log
from otel_gpu.idling import Idling
from otel_gpu.model import AttributeValue
from otel_gpu.planning import otlp_parts
from otel_gpu.sampler import Plan


class Outcome(StrEnum):
    """What became of a configuration that was read again."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Change:
    """What the sampler's thread takes over between two sweeps, and how it says that it did."""

    settings: Settings
    plan: Plan
    attributes: Mapping[str, AttributeValue]
    outlet: Outlet | None  # None: as before
    relisten: bool  # whether `events` changed
    done: threading.Event = field(default_factory=threading.Event)


def outlet(settings: Settings, resource: Resource) -> Outlet:
    """Make the outlet of log records. Raises ConfigError."""
    return Outlet(otlp_parts(settings), resource, __version__)


def hears(settings: Settings) -> KernelLog | None:
    """Open the kernel's log, if Xids are wanted from there."""
    return kernel_log(settings.events.kernel_log) if settings.events.xid else None


def idling(settings: Settings) -> Idling | None:
    """Say when the GPUs are to be let go, if ever."""
    after_s = settings.gpus.release_idle
    return Idling(after_s) if after_s else None


def waiting(changes: SimpleQueue[Change]) -> Iterator[Change]:
    """Take what waits in a queue."""
    while True:
        try:
            yield changes.get_nowait()
        except Empty:
            return
