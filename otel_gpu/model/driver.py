"""What is asked of the driver, and what it answers: its codes, its GPUs, its events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple, Protocol


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
    mig_slots: int = 0  # how many instances of one slice its GPU holds: 7, or 4
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
