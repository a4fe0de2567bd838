"""The words of otel-gpu: what a metric is, what is asked, what was answered, what is published.

Values only: nothing here reads a clock, a file or a driver; worker and agent share them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple, Protocol

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


class Code(IntEnum):
    """The NVML return codes that the agent acts on (nvml.h, `nvmlReturn_t`)."""

    SUCCESS = 0
    UNINITIALIZED = 1
    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    NOT_FOUND = 6
    DRIVER_NOT_LOADED = 9
    TIMEOUT = 10
    LIBRARY_NOT_FOUND = 12
    FUNCTION_NOT_FOUND = 13
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    OPERATING_SYSTEM = 17
    LIB_RM_VERSION_MISMATCH = 18
    NO_DATA = 21
    ARGUMENT_VERSION_MISMATCH = 25
    NOT_READY = 27
    PID_NAMESPACE = -1  # ours: in a PID namespace NVML's process lists are silently empty
    GPU_NOT_FOUND = 28
    UNKNOWN = 999


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


class Query(NamedTuple):
    """One question to NVML about one GPU: the function and its arguments after the handle.

    A field is `Query("nvmlDeviceGetFieldValues", (field_id, scope_id))`: one id, one scope. The
    backend batches the fields of a sweep into one call.
    """

    call: str
    args: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.call}({', '.join(map(str, self.args))})" if self.args else self.call


class Answer(NamedTuple):
    """What NVML said: a return code, and the value when the code is 0.

    A value is a number, a string, a dict (a struct's members by their NVML names) or a list of
    them: what `marshal` carries between the worker and the agent.
    """

    code: int
    value: Any = None

    @property
    def ok(self) -> bool:
        """Whether there is a value."""
        return self.code == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A GPU, or a MIG instance, as it was enumerated: what does not change while it is there."""

    uuid: str  # GPU-... or MIG-...: `hw.id`
    index: int  # NVML's; shifts when a GPU falls off, so nothing is keyed by it
    minor: int  # of /dev/nvidiaN: `hw.name` is nvidiaN; -1 where the driver does not say
    model: str = ""
    serial: str = ""
    pci_address: str = ""  # domain:bus:device.function, as sysfs writes it
    driver_version: str = ""
    bios_version: str = ""
    firmware_version: str = ""
    part_number: str = ""
    architecture: str = ""
    compute_capability: str = ""
    parent: str = ""  # UUID of the GPU, on a MIG instance
    mig_profile: str = ""
    gpu_instance: int = -1
    compute_instance: int = -1
    fans: int = 0  # that NVML counts; a passive board has none
    decoders: int = 0  # engines of the whole GPU; GPM answers 0.0 for those that are not there
    encoders: int = 0
    jpegs: int = 0
    ofas: int = 0
    nvlinks: int = 0
    nvlink_version: int = 0  # nvml.h, nvmlNvlinkVersion_t: 6 is NVLink 4, 7 is NVLink 5
    c2c: bool = False  # whether it is linked to its CPU chip to chip

    @property
    def name(self) -> str:
        """`hw.name`: the device file's name, which does not shift when a GPU falls off.

        Empty where the driver does not say (WSL has no device files).
        """
        return f"nvidia{self.minor}" if self.minor >= 0 else ""

    @property
    def is_instance(self) -> bool:
        """Whether this is a MIG instance, whose power, clocks and temperature are its parent's."""
        return bool(self.parent)


@dataclass(frozen=True, slots=True)
class Refused:
    """A GPU that NVML counts but does not open: its index, the code and, if known, who it was."""

    index: int
    code: int
    uuid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """What an open driver says of the machine."""

    driver_version: str = ""
    nvml_version: str = ""
    cuda_version: str = ""
    library: str = ""  # the file that was loaded, or the backend's own name
    devices: tuple[Device, ...] = ()
    refused: tuple[Refused, ...] = ()
    unheard: tuple[str, ...] = ()  # UUIDs of GPUs of whose Xids the driver does not tell


class EventKind(StrEnum):
    """What the driver tells of by itself."""

    XID = "xid"
    MIG = "mig"  # instances came or went
    UNBIND = "unbind"  # a GPU is about to leave the driver
    BIND = "bind"  # a GPU came to the driver


class Event(NamedTuple):
    """What the driver told of a GPU or of itself (nvml.h, `nvmlEventData_t`), and when.

    `data` is the code of an Xid. 0xFFFFFFFF as an instance means the whole GPU.
    """

    uuid: str
    kind: str
    data: int
    gpu_instance: int
    compute_instance: int
    time_ns: int


class Backend(Protocol):
    """The one door to the hardware: `nvml`, `simulated` and `recorded` are its implementations."""

    on_call: Callable[[str, str], None]
    """Called with (UUID, NVML function) before each call that could hang, so that a hang has a
    name. Does nothing until the worker sets it."""

    def open(self, exclude: frozenset[str] = frozenset()) -> System:
        """Start the driver library and enumerate, leaving out the UUIDs in `exclude`.

        Raises BackendError when there is no usable driver. May be called again to re-enumerate.
        """

    def ask(self, uuid: str, queries: Sequence[Query]) -> list[Answer]:
        """Ask one GPU, in order; a refusal is an Answer with its code, never an exception."""

    def events(self) -> list[Event]:
        """Give what the driver told since the last call, without waiting for more."""

    def close(self) -> None:
        """Release every handle, so that no device file stays open. May be called at any time."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a GPU: what stands on each point, and what only its Resource carries."""

    attributes: Attributes  # k8s.namespace.name, k8s.pod.name, k8s.container.name, slurm.*, ...
    resource: Attributes = ()  # k8s.pod.uid


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that is published at one moment. Immutable; the ways out read nothing else.

    `devices` holds every GPU that was ever seen, so that one that is gone keeps its identity; `up`
    says which of them answered last. `trouble` is empty while the driver is open.
    """

    time_ns: int = 0
    read_s: float = 0.0  # monotonic
    system: System = field(default_factory=System)
    devices: Mapping[str, Device] = field(default_factory=dict)  # by UUID
    up: Mapping[str, bool] = field(default_factory=dict)  # by UUID
    readings: tuple[Reading, ...] = ()
    gaps: tuple[Gap, ...] = ()
    owners: Mapping[str, tuple[Owner, ...]] = field(default_factory=dict)  # by UUID
    hung: tuple[tuple[str, str], ...] = ()  # (NVML function, UUID)
    trouble: str = ""


class ResourceKey(NamedTuple):
    """Which Resource a series belongs to: the node ("" and None), a GPU, or a GPU and its owner."""

    device: str = ""
    owner: Owner | None = None


NODE = ResourceKey()


@dataclass(eq=False, slots=True)
class Series:
    """The identity of one stream of points, made once and kept while the stream lives.

    The ways out keep what they derived from it (label text, encoded attributes) in `memo`, under a
    key of their own, so that a scrape or a push writes only the value.
    """

    attributes: Mapping[str, AttributeValue]
    resource: ResourceKey = NODE
    start_ns: int | None = None
    memo: dict[Hashable, Any] = field(default_factory=dict)


class OtelGpuError(Exception):
    """Anything that otel-gpu raises on purpose."""


class ConfigError(OtelGpuError):
    """The configuration has faults; the message lists all of them, one a line."""


class BackendError(OtelGpuError):
    """The driver cannot be used: the NVML code, what was tried, and what to do about it."""

    def __init__(self, code: int, text: str, remedy: str = "") -> None:
        super().__init__(f"{text}. {remedy}" if remedy else text)
        self.code, self.text, self.remedy = code, text, remedy
