"""Forms for what differs from GPU to GPU: by generation, and by how many NVLinks it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from otel_gpu.catalog.forms import UNASKED, Answers, Form, Served, invalid, refusal
from otel_gpu.catalog.reading import FIELD
from otel_gpu.catalog.shape import number
from otel_gpu.model import (
    Answer,
    Attributes,
    Device,
    Missing,
    Outcome,
    Point,
    Query,
    Read,
    Reason,
)

MOST = 36  # nvml.h, NVML_NVLINK_MAX_LINKS since CUDA 13.3
NO_LINKS = Missing(Reason.UNSUPPORTED, "this GPU has no NVLink")


@dataclass(frozen=True, slots=True, kw_only=True)
class EachLink(Form):
    """Asks a field of every link that was counted, and folds their values to points.

    Links that do not have the field are left out. One that only does not answer now leaves a gap
    for all: without it a sum would fall, and rise again.
    """

    number: int
    fold: Callable[[Sequence[float]], list[Point]]
    attributes: Attributes = ()

    @property
    def queries(self) -> tuple[Query, ...]:
        return tuple(Query(FIELD, (self.number, link)) for link in range(MOST))

    def wanted(self, device: Device, served: Served) -> tuple[Query, ...]:
        return self.queries[: device.nvlinks]

    def read(self, device: Device, answers: Answers) -> Outcome:
        wanted = self.queries[: device.nvlinks]
        if not wanted:
            return [], [NO_LINKS._replace(attributes=self.attributes)]
        got = [self._value(query, answers.get(query, UNASKED)) for query in wanted]
        values = [one for one in got if not isinstance(one, Missing)]
        gaps = [one for one in got if isinstance(one, Missing)]
        if values:
            gaps = [gap for gap in gaps if gap.reason is not Reason.UNSUPPORTED]
        if gaps:
            return [], gaps[:1]
        folded = self.fold(values)
        return [one._replace(attributes=self.attributes + one.attributes) for one in folded], []

    def _value(self, query: Query, answer: Answer) -> int | float | Missing:
        if not answer.ok:
            return refusal(query, answer.code, self.attributes)
        value = number(answer.value, ())
        return invalid(query, answer.value, self.attributes) if value is None else value

    @property
    def source(self) -> str:
        return f"field {self.number} of each link"


@dataclass(frozen=True, slots=True)
class ByGeneration(Form):
    """One way for newer GPUs, another for older ones; what the other kind has is no gap here."""

    is_newer: Callable[[Device], bool]
    newer: Read
    older: Read

    @property
    def queries(self) -> tuple[Query, ...]:
        return self.newer.queries + self.older.queries

    def wanted(self, device: Device, served: Served) -> tuple[Query, ...]:
        return self._way(device).wanted(device, served)

    def read(self, device: Device, answers: Answers) -> Outcome:
        return self._way(device).read(device, answers)

    @property
    def source(self) -> str:
        return f"{self.newer.source}; on older GPUs {self.older.source}"

    def _way(self, device: Device) -> Read:
        return self.newer if self.is_newer(device) else self.older
