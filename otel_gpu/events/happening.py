"""One thing that a source told of a GPU: an Xid, as the driver's event or as the kernel's line."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

WHOLE_GPU = 0xFFFFFFFF  # what NVML says where no MIG instance is meant
NO_INSTANCE = -1  # as on a Device


class Source(StrEnum):
    """Who told. Each tells of one Xid once, so the two are never added up."""

    NVML = "nvml"
    KERNEL = "kernel"
    NOTE = "note"  # a line of the kernel that names no Xid, but is there only because of one


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """An Xid, or with `switch` an SXid, which is an NVSwitch's.

    The driver knows the GPU by `uuid`, the kernel by `pci_address` (as sysfs writes it, function
    included). `pid` is the process whose work it was, in the host's PID namespace; `cause` is the
    Xid that it follows; `text` is the kernel's line after the code. `fatal` is said of SXid only.
    """

    source: Source
    code: int
    time_ns: int  # Unix
    uuid: str = ""
    pci_address: str = ""
    gpu_instance: int = NO_INSTANCE
    compute_instance: int = NO_INSTANCE
    pid: int | None = None
    process: str = ""
    cause: int | None = None
    text: str = ""
    switch: str = ""
    fatal: bool = False


def reported(
    uuid: str, code: int, gpu_instance: int, compute_instance: int, time_ns: int
) -> Happening:
    """Take over an event of `nvmlEventSetWait` (`nvmlEventTypeXidCriticalError`, 0x8).

    `uuid` is of the GPU whose handle came, `code` its `eventData`, the instances its
    `gpuInstanceId` and `computeInstanceId`, where 0xFFFFFFFF is the whole GPU.
    """
    return Happening(
        source=Source.NVML,
        code=code,
        time_ns=time_ns,
        uuid=uuid,
        gpu_instance=NO_INSTANCE if gpu_instance == WHOLE_GPU else gpu_instance,
        compute_instance=NO_INSTANCE if compute_instance == WHOLE_GPU else compute_instance,
    )
