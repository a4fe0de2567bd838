"""GPM of a simulated GPU: what its profiling counters add up to between two samples.

Every metric is an integral in closed form, so that the means of contiguous spans add up to the same
whatever the spans are. The shares are those of a recorded H200 that multiplied matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from otel_gpu.backends.simulation import links
from otel_gpu.backends.simulation.physics import Gpu
from otel_gpu.catalog import profiling as gpm
from otel_gpu.model import Answer, Code

NVLINK_PROTOCOL = 1.0245  # an H200's, of payload, at 1 s
DRAM_OF_CONTROLLER = 0.68  # an H200's: bandwidth used, of the time in which there was any
SM_SHARE, TENSOR_SHARE = (0.96, 0.985), (0.97, 0.99)  # of the activity; of the former
NONE_OF_MEDIA = (
    *range(gpm.NVDEC, gpm.NVDEC + 8),
    *range(gpm.NVJPG, gpm.NVJPG + 8),
    *range(gpm.NVOFA, gpm.NVOFA + 2),
    *range(gpm.NVENC, gpm.NVENC + 4),
)

Signal = Callable[[Gpu, float], float]
"""Gives a metric's integral from second 0 to a moment: its unit times seconds."""


class Sample(NamedTuple):
    """The counters of a GPU at a moment, in monotonic seconds."""

    gpu: Gpu
    at_s: float


class Profiler:
    """The driver's side of `backends.gpm`. `otherwise` gives a metric that no signal is for."""

    def __init__(
        self, clock: Callable[[], float], otherwise: Callable[[str, int, float], Answer]
    ) -> None:
        self._clock, self._otherwise = clock, otherwise

    def support(self, _uuid: str, handle: Any) -> int:
        """Give 0 where the GPU has GPM; no board has both it and instances."""
        profiled = isinstance(handle, Gpu) and handle.board.profiled
        return Code.SUCCESS if profiled else Code.NOT_SUPPORTED

    def take(self, _uuid: str, handle: Any) -> Answer:
        """Take a sample."""
        return Answer(Code.SUCCESS, Sample(handle, self._clock()))

    def between(self, uuid: str, first: Any, second: Any, ids: Sequence[int]) -> list[Answer]:
        """Give metrics between two samples."""
        return [self._mean(uuid, first, second, number) for number in ids]

    def free(self, sample: Any) -> None:
        """Do nothing: a sample holds no memory of its own."""

    def _mean(self, uuid: str, first: Sample, second: Sample, number: int) -> Answer:
        signal = SIGNALS.get(number)
        if signal is None:
            return self._otherwise(uuid, number, second.at_s)
        area = signal(second.gpu, second.at_s) - signal(first.gpu, first.at_s)
        return Answer(Code.SUCCESS, area / (second.at_s - first.at_s))


def none(_: Gpu, __: float) -> float:
    """Give 0: what a job does not use."""
    return 0.0


def working(low: float, high: float, word: str) -> Signal:
    """Follow the activity, by a share that is the GPU's own; in percent."""
    return lambda gpu, at_s: 100 * gpu.chance.between(low, high, word) * gpu.activity.integral(at_s)


def tensor(gpu: Gpu, at_s: float) -> float:
    """Follow the training: a little less than the multiprocessors."""
    share = gpu.chance.between(*SM_SHARE, "sm") * gpu.chance.between(*TENSOR_SHARE, "tensor")
    return 100 * share * gpu.training.integral(at_s)


def dram(gpu: Gpu, at_s: float) -> float:
    """Follow the activity, as the memory controller does."""
    share = DRAM_OF_CONTROLLER * gpu.bandwidth_wanted
    return 100 * share * gpu.activity.integral(at_s)


def pcie(way: int) -> Signal:
    """Follow the activity from what polling takes: out of the GPU (0) or into it (1), in MiB."""

    def mebibytes(gpu: Gpu, at_s: float) -> float:
        idle, full = gpu.pcie_at(0)[way], gpu.pcie_at(1)[way]
        return (idle * at_s + (full - idle) * gpu.activity.integral(at_s)) / gpm.MEBI

    return mebibytes


def nvlink(way: int) -> Signal:
    """Follow the training, with the protocol: out of the GPU (0) or into it (1), in MiB."""
    return lambda gpu, at_s: (
        NVLINK_PROTOCOL * links.rate(gpu, way) * gpu.training.integral(at_s) / gpm.MEBI
    )


SIGNALS: Mapping[int, Signal] = {
    gpm.GRAPHICS: working(1, 1, "graphics"),
    gpm.SM: working(*SM_SHARE, "sm"),
    gpm.SM_OCCUPANCY: working(0.12, 0.3, "occupancy"),
    gpm.INTEGER: working(0.01, 0.05, "integer"),
    gpm.TENSOR: tensor,
    gpm.TENSOR_HMMA: tensor,  # a job trains in half precision
    gpm.DRAM: dram,
    gpm.FP32: working(0.02, 0.08, "fp32"),
    gpm.FP16: working(0.005, 0.03, "fp16"),
    gpm.PCIE_TRANSMIT: pcie(0),
    gpm.PCIE_RECEIVE: pcie(1),
    gpm.NVLINK_TRANSMIT: nvlink(links.SENT),
    gpm.NVLINK_RECEIVE: nvlink(links.RECEIVED),
    **dict.fromkeys((gpm.TENSOR_DFMA, gpm.TENSOR_DMMA, gpm.TENSOR_IMMA, gpm.FP64), none),
    **dict.fromkeys((gpm.C2C_TRANSMIT, gpm.C2C_RECEIVE), none),
    **dict.fromkeys(NONE_OF_MEDIA, none),
}
"""By GPM's metric id."""
