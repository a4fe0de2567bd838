"""Who a GPU is: NVML's facts about one as a `Device`. A fact that is refused stays empty."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from otel_gpu.model import Device

ARCHITECTURES: Mapping[int, str] = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada",
    9: "Hopper",
    10: "Blackwell",
    13: "Rubin",
    0xFFFFFFFF: "",  # the driver does not know it either
}
UNKNOWN_MINOR = -1
MIG_NAME = " MIG "  # "NVIDIA H200 MIG 1g.18gb"

WHOLE_GPU = "nvmlDeviceGetGpuInstanceProfileInfo"
LINK_COUNT, LINK_VERSION = 91, 166  # nvml.h, NVML_FI_DEV_NVLINK_*

Fact = Callable[[str], Any]
"""Gives what a function of NVML says of this GPU, or None where it refuses."""

Field = Callable[[int], Any]
"""Gives the value of a field of this GPU, or None where it is refused."""


def gpu(uuid: str, index: int, fact: Fact) -> Device:
    """Describe a GPU."""
    minor = fact("nvmlDeviceGetMinorNumber")
    return Device(
        uuid=uuid,
        index=index,
        minor=UNKNOWN_MINOR if minor is None else minor,
        model=fact("nvmlDeviceGetName") or "",
        serial=fact("nvmlDeviceGetSerial") or "",
        pci_address=pci_address(fact("nvmlDeviceGetPciInfo")),
        bios_version=fact("nvmlDeviceGetVbiosVersion") or "",
        firmware_version=fact("nvmlDeviceGetGspFirmwareVersion") or "",
        part_number=fact("nvmlDeviceGetBoardPartNumber") or "",
        architecture=architecture(fact("nvmlDeviceGetArchitecture")),
        compute_capability=".".join(map(str, fact("nvmlDeviceGetCudaComputeCapability") or ())),
        fans=fact("nvmlDeviceGetNumFans") or 0,
    )


def equipped(device: Device, fact: Fact, field: Field) -> Device:
    """Add what a GPU is equipped with, which bounds what GPM may be believed about."""
    whole = fact(WHOLE_GPU) or {}
    links = count(field(LINK_COUNT))
    return replace(
        device,
        decoders=whole.get("decoderCount", 0),
        encoders=whole.get("encoderCount", 0),
        jpegs=whole.get("jpegCount", 0),
        ofas=whole.get("ofaCount", 0),
        nvlinks=links,
        nvlink_version=count(field(LINK_VERSION)) if links else 0,
        c2c=bool((fact("nvmlDeviceGetC2cModeInfoV") or {}).get("isC2cEnabled")),
    )


def instance(parent: Device, uuid: str, slots: int, fact: Fact) -> Device:
    """Describe a MIG instance: the facts of its GPU, and which part of it this is."""
    profile = (fact("nvmlDeviceGetName") or "").partition(MIG_NAME)[2]
    return replace(
        parent,
        uuid=uuid,
        parent=parent.uuid,
        mig_profile=profile,
        mig_slots=slots,
        gpu_instance=number(fact("nvmlDeviceGetGpuInstanceId")),
        compute_instance=number(fact("nvmlDeviceGetComputeInstanceId")),
        fans=0,  # these are the whole board's
        decoders=0,
        encoders=0,
        jpegs=0,
        ofas=0,
        nvlinks=0,
        c2c=False,
    )


def count(value: Any) -> int:
    """Take what a field tells, whose type is the driver's choice, as a number of parts."""
    return value if isinstance(value, int) and value > 0 else 0


def number(value: int | None) -> int:
    """Write a number that is not known as -1, which no instance has."""
    return -1 if value is None else value


def pci_address(info: Mapping[str, Any] | None) -> str:
    """Write `nvmlPciInfo_t.busId` as sysfs does: `00000000:3B:00.0` is `0000:3b:00.0`."""
    found = re.fullmatch(r"([0-9a-f]+):(\S+)", str((info or {}).get("busId", "")).lower())
    return f"{int(found[1], 16):04x}:{found[2]}" if found else ""


def architecture(number: int | None) -> str:
    """Name an `nvmlDeviceArchitecture_t`; one that came after this was written is its number."""
    return "" if number is None else ARCHITECTURES.get(number, str(number))


def cuda_version(number: int | None) -> str:
    """Write the CUDA version of a driver as people do: 12040 is 12.4."""
    return "" if number is None else f"{number // 1000}.{number % 1000 // 10}"


def mapped_library(maps: str, name: str) -> str:
    """Find the file of a library among the mappings of a process (/proc/PID/maps)."""
    lines = (line.split(maxsplit=5) for line in maps.splitlines())
    paths = (fields[5] for fields in lines if len(fields) == 6)
    stem = name.partition(".so")[0]
    return next((path for path in paths if path.rpartition("/")[2].startswith(f"{stem}.so")), "")
