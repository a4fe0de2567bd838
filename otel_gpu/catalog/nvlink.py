"""NVLink, the chip-to-chip link to the CPU, and the fabric that NVSwitches make.

`receive` is into the GPU, `transmit` out of it. Bytes are payload, exact; rates of GPM include the
protocol.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from otel_gpu.catalog.forms import Split, Values
from otel_gpu.catalog.judging import one_of
from otel_gpu.catalog.links import ByGeneration, EachLink
from otel_gpu.catalog.profiling import (
    C2C_RECEIVE,
    C2C_TRANSMIT,
    MEBI,
    NVLINK_RECEIVE,
    NVLINK_TRANSMIT,
    gpm,
)
from otel_gpu.catalog.reading import FIELD, asking, field, only, split
from otel_gpu.catalog.shape import Misshapen, whole
from otel_gpu.model import Device, Kind, Metric, Missing, Point, Profile, Query, Read, Reason, Tier

ALL_LINKS = 0xFFFFFFFF  # nvml.h: the scope that sums
KIBI = 1024
MEGA = 1_000_000
NVLINK_5 = 7  # nvml.h, nvmlNvlinkVersion_t
BIT_ERROR_RATES = {
    "effective": Query(FIELD, (220, ALL_LINKS)),
    "symbol": Query(FIELD, (222, ALL_LINKS)),
}
P2P = {
    name: Query("nvmlDeviceGetP2PStatus", (capability,))  # nvml.h, nvmlGpuP2PCapsIndex_t
    for name, capability in {"read": 0, "write": 1, "nvlink": 2, "atomics": 3}.items()
}
"""Asked of a GPU against every other one: a status by the other's UUID."""

NVLINK_5_ERRORS = {
    "malformed_packet": 206,
    "buffer_overrun": 207,
    "receive": 208,
    "receive_remote": 209,
    "receive_general": 210,
    "local_link_integrity": 211,
    "transmit_discard": 212,
    "recovery_failed": 214,
    "effective": 219,
    "symbol": 221,
}
LINK_STATES = {0: "inactive", 1: "active", 2: "sleep", 3: "disabled"}
FABRIC = Query("nvmlDeviceGetGpuFabricInfoV")
FABRIC_STATES = {0: "not_supported", 1: "not_started", 2: "in_progress", 3: "completed"}


class Check(NamedTuple):
    """Where nvml.h's health mask tells of a check (0: it is not made), and what means a fault."""

    shift: int
    width: int
    fault: range


FABRIC_CHECKS = {
    "degraded_bandwidth": Check(0, 0b11, range(1, 2)),
    "route_recovery": Check(2, 0b11, range(1, 2)),
    "route_unhealthy": Check(4, 0b11, range(1, 2)),
    "access": Check(6, 0b11, range(1, 2)),
    "configuration": Check(8, 0b1111, range(2, 16)),
}
"""nvml.h, NVML_GPU_FABRIC_HEALTH_MASK_*."""


def linked(device: Device) -> bool:
    """Whether the GPU has NVLink at all."""
    return device.nvlinks > 0


def on_links(read: Read) -> Read:
    """Ask only GPUs that have links: GPM answers 0.0 for those that are not there."""
    return only(linked, read, "this GPU has no NVLink")


def is_nvlink_5(device: Device) -> bool:
    """Whether the links are of the fifth generation or newer, which count other errors."""
    return device.nvlink_version >= NVLINK_5


def summed(number: int, kind: str) -> Read:
    """Add up a counter of every link, where no sum is offered."""
    return EachLink(
        number=number, fold=lambda values: [Point(sum(values))], attributes=(("error.type", kind),)
    )


def states(values: Sequence[float]) -> list[Point]:
    """Count the links in each state."""
    counts = Counter(LINK_STATES.get(int(value), f"{value}") for value in values)
    names = dict.fromkeys((*LINK_STATES.values(), *counts))
    return [Point(counts[name], (("nvidia.gpu.nvlink.link.state", name),)) for name in names]


def bit_error_rates(_device: Device, values: Values) -> list[Point] | Missing:
    """Decode rates of the form mantissa x 10^-exponent, in bits 8 to 11 and 0 to 7 (nvml.h)."""
    return [
        Point((value >> 8 & 0xF) * 10.0 ** -(value & 0xFF), (("nvidia.gpu.nvlink.rate", name),))
        for name, query in BIT_ERROR_RATES.items()
        for value in (whole(values, query),)
    ]


def peers(_device: Device, values: Values) -> list[Point] | Missing:
    """Say what the GPU can do with each other one; nvml.h's status 0 is ok."""
    return [
        Point(
            int(status == 0),
            (("nvidia.gpu.peer.id", peer), ("nvidia.gpu.p2p.capability", name)),
        )
        for name, query in P2P.items()
        for peer, status in by_peer(values, query)
    ] or Missing(Reason.UNSUPPORTED, "this GPU has no peer")


def by_peer(values: Values, query: Query) -> list[tuple[str, int]]:
    """Take the status with each other GPU out of an answer."""
    found = values[query]
    if not isinstance(found, dict):
        raise Misshapen(query)
    return [(peer, whole(values, query, peer)) for peer in found]


def fabric_state(_device: Device, values: Values) -> list[Point] | Missing:
    """Say how far the GPU got in joining the fabric."""
    return one_of("nvidia.gpu.fabric.state", FABRIC_STATES, whole(values, FABRIC, "state"))


def fabric_faults(_device: Device, values: Values) -> list[Point] | Missing:
    """Say which of the fabric's checks failed; those that are not made are left out."""
    return [
        Point(int(failed), (("nvidia.gpu.fabric.check", name),))
        for name, failed in checked(whole(values, FABRIC, "healthMask")).items()
    ] or Missing(Reason.UNSUPPORTED, f"{FABRIC}: none of the checks is made here")


def checked(mask: int) -> dict[str, bool]:
    """Say of each check that the health mask tells of whether it failed."""
    return {
        name: state in check.fault
        for name, check in FABRIC_CHECKS.items()
        if (state := mask >> check.shift & check.width)
    }


NVLINK_IO = Metric(
    name="nvidia.gpu.nvlink.io",
    kind=Kind.COUNTER,
    unit="By",
    brief="Payload over all NVLinks, since the driver was loaded.",
    read=on_links(
        split(
            "network.io.direction",
            {
                "transmit": field(138, scope=ALL_LINKS, scale=KIBI),
                "receive": field(139, scope=ALL_LINKS, scale=KIBI),
            },
        )
    ),
    attributes=("network.io.direction",),
    integer=True,
    typical=(0, 2e11),
    dcgm=("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",),
    note="DCGM types a rate of this as a counter.",
)

NVLINK_THROUGHPUT = Metric(
    name="nvidia.gpu.nvlink.throughput",
    kind=Kind.GAUGE,
    unit="By/s",
    brief="Bytes a second over all NVLinks, protocol included.",
    read=on_links(
        split(
            "network.io.direction",
            {
                "transmit": gpm(NVLINK_TRANSMIT, scale=MEBI),
                "receive": gpm(NVLINK_RECEIVE, scale=MEBI),
            },
        )
    ),
    tier=Tier.FAST,
    profile=Profile.FULL,
    attributes=("network.io.direction",),
    typical=(0, 2e11),
    dcgm=("DCGM_FI_PROF_NVLINK_TX_BYTES", "DCGM_FI_PROF_NVLINK_RX_BYTES"),
)

NVLINK_ERRORS = Metric(
    name="nvidia.gpu.nvlink.errors",
    kind=Kind.COUNTER,
    unit="{error}",
    brief="Errors of all NVLinks by type, since the driver was loaded.",
    read=on_links(
        ByGeneration(
            is_nvlink_5,
            split(
                "error.type",
                {name: field(number, scope=ALL_LINKS) for name, number in NVLINK_5_ERRORS.items()},
            ),
            Split((summed(161, "replay"), summed(162, "recovery"), summed(163, "crc"))),
        )
    ),
    tier=Tier.SLOW,
    attributes=("error.type",),
    integer=True,
    typical=(0, 0),
    dcgm=("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",),
)

NVLINK_RECOVERIES = Metric(
    name="nvidia.gpu.nvlink.recoveries",
    kind=Kind.COUNTER,
    unit="{event}",
    brief="Times that a link was lost and came back, since the driver was loaded.",
    read=on_links(only(is_nvlink_5, field(213, scope=ALL_LINKS), "counted by NVLink 5 and newer")),
    tier=Tier.SLOW,
    profile=Profile.FULL,
    integer=True,
    typical=(0, 0),
)

BIT_ERROR_RATE = Metric(
    name="nvidia.gpu.nvlink.bit_error_rate",
    kind=Kind.GAUGE,
    unit="1",
    brief="Part of the bits over all NVLinks that arrived wrong.",
    read=on_links(
        only(
            is_nvlink_5,
            asking(tuple(BIT_ERROR_RATES.values()), bit_error_rates),
            "measured by NVLink 5 and newer",
        )
    ),
    tier=Tier.SLOW,
    profile=Profile.FULL,
    attributes=("nvidia.gpu.nvlink.rate",),
    typical=(0, 1e-12),
)

P2P_STATUS = Metric(
    name="nvidia.gpu.p2p.status",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="1 where the GPU can reach another one directly in this way, else 0.",
    read=asking(tuple(P2P.values()), peers),
    tier=Tier.SLOW,
    profile=Profile.FULL,
    attributes=("nvidia.gpu.peer.id", "nvidia.gpu.p2p.capability"),
    integer=True,
    typical=(0, 1),
)

LINK_STATUS = Metric(
    name="nvidia.gpu.nvlink.link.status",
    kind=Kind.UPDOWNCOUNTER,
    unit="{link}",
    brief="NVLinks in each state.",
    read=EachLink(number=165, fold=states),
    tier=Tier.SLOW,
    attributes=("nvidia.gpu.nvlink.link.state",),
    integer=True,
    typical=(18, 18),
)

NVLINK_BANDWIDTH = Metric(
    name="nvidia.gpu.nvlink.bandwidth",
    kind=Kind.GAUGE,
    unit="By/s",
    brief="Bandwidth of all NVLinks together, one way.",
    read=EachLink(number=164, fold=lambda values: [Point(sum(values) * MEGA)]),
    tier=Tier.SLOW,
    profile=Profile.FULL,
    typical=(4.5e11, 4.5e11),
)

C2C_THROUGHPUT = Metric(
    name="nvidia.gpu.c2c.throughput",
    kind=Kind.GAUGE,
    unit="By/s",
    brief="Bytes a second over the chip-to-chip link to the CPU.",
    read=only(
        lambda device: device.c2c,
        split(
            "network.io.direction",
            {
                "transmit": gpm(C2C_TRANSMIT, scale=MEBI),
                "receive": gpm(C2C_RECEIVE, scale=MEBI),
            },
        ),
        "this GPU has no chip-to-chip link",
    ),
    tier=Tier.FAST,
    profile=Profile.FULL,
    attributes=("network.io.direction",),
    typical=(0, 4e11),
)

FABRIC_STATUS = Metric(
    name="nvidia.gpu.fabric.status",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="1 for the state in which the GPU is with the NVSwitch fabric, 0 for the others.",
    read=asking((FABRIC,), fabric_state),
    tier=Tier.SLOW,
    attributes=("nvidia.gpu.fabric.state",),
    integer=True,
    typical=(0, 1),
    note="A state before `completed` on a machine with NVSwitches: the Fabric Manager is missing.",
)

FABRIC_FAULT = Metric(
    name="nvidia.gpu.fabric.fault",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="1 for each of the fabric's checks that failed, 0 for those that passed.",
    read=asking((FABRIC,), fabric_faults),
    tier=Tier.SLOW,
    profile=Profile.FULL,
    attributes=("nvidia.gpu.fabric.check",),
    integer=True,
    typical=(0, 0),
)

METRICS = (
    NVLINK_IO,
    NVLINK_THROUGHPUT,
    NVLINK_ERRORS,
    NVLINK_RECOVERIES,
    BIT_ERROR_RATE,
    LINK_STATUS,
    NVLINK_BANDWIDTH,
    P2P_STATUS,
    C2C_THROUGHPUT,
    FABRIC_STATUS,
    FABRIC_FAULT,
)
