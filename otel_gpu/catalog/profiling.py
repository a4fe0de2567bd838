"""Forms for GPM, the GPU's own profiling counters (Hopper and newer): means and their integrals.

The answer to `nvmlGpmMetricsGet` of one id is [mean, begin, end]: the mean over a span, and the
span in monotonic seconds. The ledger integrates each metric over contiguous spans; what lies
between two spans is not guessed, it is counted as uncovered.
"""

from __future__ import annotations

from dataclasses import dataclass

from otel_gpu.catalog.forms import UNASKED, Answers, Ask, Form, refusal
from otel_gpu.catalog.ranges import BOUNDS
from otel_gpu.catalog.shape import scaled
from otel_gpu.model import Attributes, Code, Device, Outcome, Point, Profile, Query

CALL = "nvmlGpmMetricsGet"
PERCENT = 1e-2
MEBI = 2**20
STANDING = frozenset({Code.SUCCESS, Code.NO_DATA})

GRAPHICS, SM, SM_OCCUPANCY, INTEGER = 1, 2, 3, 4  # nvml.h, nvmlGpmMetricId_t
TENSOR, TENSOR_DFMA, TENSOR_HMMA, TENSOR_DMMA, TENSOR_IMMA = 5, 6, 7, 8, 9
DRAM, FP64, FP32, FP16 = 10, 11, 12, 13
PCIE_TRANSMIT, PCIE_RECEIVE = 20, 21
NVDEC, NVJPG, NVOFA, NVENC = 30, 40, 50, 166  # the first of each
NVLINK_RECEIVE, NVLINK_TRANSMIT = 60, 61
C2C_TRANSMIT, C2C_RECEIVE = 100, 101


IN_BYTES = frozenset(
    {PCIE_TRANSMIT, PCIE_RECEIVE, NVLINK_RECEIVE, NVLINK_TRANSMIT, C2C_TRANSMIT, C2C_RECEIVE}
)


def highest(query: Query) -> float:
    """Give the highest mean that can be true: in MiB/s, or in percent."""
    return BOUNDS["By/s"][1] / MEBI if query.args[0] in IN_BYTES else 100.0


def gpm(number: int, *, scale: float, profile: Profile | None = None) -> Ask:
    """Ask for the mean of a GPM metric since it was last read."""
    return Ask(query=Query(CALL, (number,)), path=(0,), scale=scale, profile=profile)


def integral_of(query: Query) -> Query:
    """Name the ledger's integral of a GPM metric: [integral, uncovered seconds, start]."""
    return Query("integral", query.args)


def summed(query: Query, answers: Answers) -> tuple[float, float, int] | int:
    """Give the ledger's integral of a GPM metric, or the code that says why there is none.

    It stands while a pair is too short to be read; where GPM is refused it is not shown as if
    nothing was going on.
    """
    code, known = answers.get(query, UNASKED).code, answers.get(integral_of(query))
    if known is None or code not in STANDING:
        return code or UNASKED.code
    total, uncovered_s, start_ns = known.value
    return total, uncovered_s, start_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Integral(Form):
    """A GPM metric integrated over time: from 0 when it was first read, exact over its spans."""

    query: Query
    scale: float
    attributes: Attributes = ()

    @property
    def queries(self) -> tuple[Query, ...]:
        return (self.query,)

    def read(self, device: Device, answers: Answers) -> Outcome:
        known = summed(self.query, answers)
        if isinstance(known, int):
            return [], [refusal(self.query, known, self.attributes)]
        total, _, start_ns = known
        return [Point(scaled(total, self.scale), self.attributes, start_ns)], []

    @property
    def source(self) -> str:
        return f"`{self.query}`, integrated over contiguous spans"


@dataclass(frozen=True, slots=True)
class Uncovered(Form):
    """The seconds that lay between the spans of a GPM metric, and so are in no integral."""

    query: Query

    @property
    def queries(self) -> tuple[Query, ...]:
        return (self.query,)

    def read(self, device: Device, answers: Answers) -> Outcome:
        known = summed(self.query, answers)
        if isinstance(known, int):
            return [], [refusal(self.query, known)]
        _, uncovered_s, start_ns = known
        return [Point(uncovered_s, (), start_ns)], []

    @property
    def source(self) -> str:
        return f"the spans of `{self.query}`"


def integral(number: int, *, scale: float, attributes: Attributes = ()) -> Integral:
    """Integrate a GPM metric: a fraction becomes seconds, bytes a second become bytes."""
    return Integral(query=Query(CALL, (number,)), scale=scale, attributes=attributes)
