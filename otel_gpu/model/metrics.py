"""What a metric is, and what reading one gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple, Protocol

from otel_gpu.model.driver import Answer, Code, Device, Query

AttributeValue = str | int | float | bool
Attributes = tuple[tuple[str, AttributeValue], ...]


class Kind(StrEnum):
    """The OTel instrument a metric becomes (observable, except the histogram)."""

    GAUGE = "gauge"
    COUNTER = "counter"
    UPDOWNCOUNTER = "updowncounter"
    HISTOGRAM = "histogram"


class Tier(StrEnum):
    """How often a metric is read; the seconds are configuration (`sampling`, `metrics.tiers`)."""

    FAST = "fast"
    DEFAULT = "default"
    SLOW = "slow"
    STATIC = "static"  # once at every (re)enumeration
    EVENT = "event"  # when it happens


class Profile(IntEnum):
    """The smallest profile that includes a metric. NONE has none; OFF: only by name."""

    NONE = 0
    CORE = 1
    STANDARD = 2
    FULL = 3
    OFF = 9


class Reason(StrEnum):
    """Why a reading is missing; the `reason` attribute of `otel_gpu.reading.missing`."""

    UNSUPPORTED = "unsupported"
    PERMISSION = "permission"
    PID_NAMESPACE = "pid_namespace"
    LOST = "lost"
    TIMEOUT = "timeout"
    STALE = "stale"
    INVALID = "invalid"
    COVERAGE = "coverage"
    NOT_READY = "not_ready"


REASONS: Mapping[int, Reason] = {
    Code.NOT_SUPPORTED: Reason.UNSUPPORTED,
    Code.FUNCTION_NOT_FOUND: Reason.UNSUPPORTED,
    Code.ARGUMENT_VERSION_MISMATCH: Reason.UNSUPPORTED,
    Code.INVALID_ARGUMENT: Reason.UNSUPPORTED,
    Code.NO_PERMISSION: Reason.PERMISSION,
    Code.GPU_IS_LOST: Reason.LOST,
    Code.RESET_REQUIRED: Reason.LOST,
    Code.UNKNOWN: Reason.LOST,
    Code.TIMEOUT: Reason.TIMEOUT,
    Code.PID_NAMESPACE: Reason.PID_NAMESPACE,
}
"""What a refusal means to a reader; a code that is not here is `not_ready` and asked again."""


class Point(NamedTuple):
    """One value with the attributes that tell it from its siblings of the same metric and GPU.

    `start_ns` is where a counter began to count (Unix nanoseconds), or None when nobody knows.
    """

    value: int | float
    attributes: Attributes = ()
    start_ns: int | None = None


class Missing(NamedTuple):
    """A point that could not be read: which one, why, and what NVML was asked."""

    reason: Reason
    detail: str
    attributes: Attributes = ()


Outcome = tuple[list[Point], list[Missing]]


class Read(Protocol):
    """How a metric is read, as data: see `catalog/reading.py` for the forms it takes."""

    @property
    def source(self) -> str:
        """Where the answer comes from, in words, for the docs; code stands in backticks."""

    @property
    def queries(self) -> tuple[Query, ...]:
        """Every question that it may need answered, on any device."""

    def wanted(self, device: Device, served: Callable[[Query], bool]) -> tuple[Query, ...]:
        """Give the questions to ask this device now, knowing which were served before."""

    def at(self, profile: Profile) -> Read | None:
        """Give the part of it that this profile includes, or None."""

    def read(self, device: Device, answers: Mapping[Query, Answer]) -> Outcome:
        """Turn the answers into points, and into gaps where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric: everything that is known of it, in one record.

    `unit` is UCUM; values are in it. `integer` marks counts and bytes, whose points are ints.
    `owner`: carries pod or job attributes while one owner holds the GPU. `on_instance`: also read
    on MIG instances. `constant` stands on every point; `attributes` names the keys that vary.
    `typical` bounds what a healthy GPU shows (axes, and the simulation); for a counter it is the
    growth per second. `buckets` are a histogram's upper bounds.
    """

    name: str
    kind: Kind
    unit: str
    brief: str
    read: Read
    tier: Tier = Tier.DEFAULT
    profile: Profile = Profile.STANDARD
    attributes: tuple[str, ...] = ()
    constant: Attributes = ()
    integer: bool = False
    owner: bool = False
    on_instance: bool = False
    typical: tuple[float, float] = (0.0, 1.0)
    buckets: tuple[float, ...] = ()
    wraps: int = 0  # where the driver's count begins at 0 again without a reset, as 2**32
    dcgm: tuple[str, ...] = ()
    note: str = ""


class Reading(NamedTuple):
    """The points of one metric on one GPU (`device` "" is the node), and when they were read.

    `read_s` is monotonic seconds, which age without clock steps; `time_ns` is Unix time.
    """

    metric: Metric
    device: str
    points: tuple[Point, ...]
    time_ns: int
    read_s: float


class Gap(NamedTuple):
    """A point of one metric on one GPU that is not published, and why."""

    metric: str
    device: str
    missing: Missing
