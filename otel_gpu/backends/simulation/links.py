"""NVLink of a simulated GPU: its links, what goes over them, and the fabric that they lead to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from otel_gpu.backends.simulation.chance import Chance
from otel_gpu.backends.simulation.meter import TICK_S
from otel_gpu.backends.simulation.physics import Gpu
from otel_gpu.backends.simulation.shapes import Moment, Reply, chosen
from otel_gpu.catalog.nvlink import ALL_LINKS, FABRIC, NVLINK_5
from otel_gpu.model import Answer, Code

COUNT, VERSION = 91, 166  # nvml.h, NVML_FI_DEV_NVLINK_*
DATA_SENT, DATA_RECEIVED = 138, 139
SPEED, STATE = 164, 165
SENT, RECEIVED = 0, 1
KIBI = 1024
MEGA = 1_000_000
ACTIVE = 1
COMPLETED = 3  # nvml.h, nvmlGpuFabricState_t
HEALTHY = 1  # nvml.h, NVML_GPU_FABRIC_HEALTH_SUMMARY_*
VERSION_3 = 0x3000028  # of nvmlGpuFabricInfo_v3_t
NO_BIT_ERRORS = 0xFFF  # 15 x 10^-255: how a link says that it has measured none

Link = Callable[[Gpu, int, int], int]
"""Gives a field of one link, or of all: GPU, tick, scope."""


def rate(gpu: Gpu, way: int) -> float:
    """Give the payload in bytes a second while a job trains as hard as it can.

    A GPU without peers, or divided into instances, has nobody to speak with.
    """
    if gpu.alone or gpu.instances:
        return 0.0
    share = gpu.chance.between(0.06, 0.2, "nvlink")
    share *= gpu.chance.between(0.97, 1.03, "nvlink received") if way == RECEIVED else 1.0
    return share * gpu.board.nvlink.links * gpu.board.nvlink.speed * MEGA


def moved(way: int) -> Link:
    """Give the payload since the driver was loaded, in KiB: those of the links are its sum."""

    def kibibytes(gpu: Gpu, tick: int, link: int) -> int:
        trained_s = gpu.loaded_s * gpu.training.mean + gpu.training.integral(tick * TICK_S)
        total = int(rate(gpu, way) * trained_s / KIBI)
        return total if link == ALL_LINKS else (total + link) // gpu.board.nvlink.links

    return kibibytes


def same(value: int) -> Link:
    """Give a value that every link has."""
    return lambda _gpu, _tick, _link: value


def on_link(read: Link, *, whole: bool = False, offered: Callable[[int], bool] = bool) -> Reply:
    """Answer for a link of those that there are and, where `whole`, for all of them.

    `offered` tells by the version of the links whether they have the field.
    """

    def value(gpu: Gpu, moment: Moment, args: tuple[int, ...]) -> int | Answer:
        link = args[1]
        if not offered(gpu.board.nvlink.version):
            return Answer(Code.NOT_SUPPORTED)
        if not (0 <= link < gpu.board.nvlink.links or (whole and link == ALL_LINKS)):
            return Answer(Code.INVALID_ARGUMENT)
        return read(gpu, moment.tick, link)

    return value


def older(version: int) -> bool:
    """Whether links count errors as they did up to NVLink 4."""
    return 0 < version < NVLINK_5


def newer(version: int) -> bool:
    """Whether links count errors as they do since NVLink 5."""
    return version >= NVLINK_5


def count(gpu: Gpu, _: Moment, __: tuple[int, ...]) -> int | Answer:
    """Give how many links there are."""
    return gpu.board.nvlink.links or Answer(Code.NOT_SUPPORTED)


def fabric(gpu: Gpu, _: Moment, __: tuple[int, ...]) -> dict[str, Any] | Answer:
    """Give an `nvmlGpuFabricInfo_v3_t` of a GPU that joined; a fabric without health has no UUID.

    The members are those of pynvml's struct.
    """
    health = gpu.board.fabric_health
    if health is None:
        return Answer(Code.NOT_SUPPORTED)
    cluster = Chance(gpu.board.model).octets(16, "cluster") if health else bytes(16)
    return {
        "version": VERSION_3,
        "clusterUuid": list(cluster),
        "status": Code.SUCCESS.value,
        "cliqueId": 0,
        "state": COMPLETED,
        "healthMask": health,
        "healthSummary": HEALTHY if health else 0,
    }


def peers(gpu: Gpu, others: Sequence[str], args: tuple[int, ...]) -> Answer:
    """Answer what a GPU can do with each other one, by UUID: an `nvmlGpuP2PStatus_t`."""
    status = chosen(gpu.board.peers, args)
    return status if isinstance(status, Answer) else Answer(0, dict.fromkeys(others, status))


CALLS: Mapping[str, Reply] = {FABRIC.call: fabric}
"""By function."""

FIELDS: Mapping[int, Reply] = {
    COUNT: count,
    DATA_SENT: on_link(moved(SENT), whole=True),
    DATA_RECEIVED: on_link(moved(RECEIVED), whole=True),
    **dict.fromkeys((161, 162, 163), on_link(same(0), offered=older)),
    SPEED: on_link(lambda gpu, _tick, _link: gpu.board.nvlink.speed),
    STATE: on_link(same(ACTIVE)),
    VERSION: on_link(lambda gpu, _tick, _link: gpu.board.nvlink.version),
    **dict.fromkeys((*range(206, 215), 219, 221), on_link(same(0), whole=True, offered=newer)),
    **dict.fromkeys((220, 222), on_link(same(NO_BIT_ERRORS), whole=True, offered=newer)),
}
"""By field id, whatever the scope: a link, or all of them."""
