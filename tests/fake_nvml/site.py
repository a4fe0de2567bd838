"""The agent's own worker and sampler on a fake machine, and a clock for what is tried again later.

Only the supervisor lives by the clock that a test pushes on: what it waits for comes at once. The
sampler keeps the real time, by which the worker says when it read.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from otel_gpu.catalog import CATALOG
from otel_gpu.model import Attributes, Missing, Point, Snapshot, System
from otel_gpu.sampler import Plan, Sampler, tiers
from otel_gpu.sweep import intervals
from otel_gpu.worker.supervisor import Supervisor

DEADLINE_S = 0.5
MOMENT_S = 1e-3  # everything is due in every sweep


class Pushed:
    """A supervisor for which it is later than for the sampler that asks it."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def system(self, now: float) -> System | None:
        return self._site.door.system(now + self._site.ahead_s)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._site.door, name)


class Site:
    """A supervisor and a sampler; leaving it lets the worker go."""

    def __init__(self, *names: str, open_deadline_s: float = 20.0) -> None:
        self.ahead_s = 0.0
        self.door = Supervisor(
            "nvml",
            deadline_s=DEADLINE_S,
            open_deadline_s=open_deadline_s,
            clock=lambda: time.monotonic() + self.ahead_s,
        )
        metrics = tuple(metric for metric in CATALOG if metric.name in names)
        every = intervals(metrics, tiers(MOMENT_S, MOMENT_S, MOMENT_S), lambda _: None)
        self.sampler = Sampler(Pushed(self), Plan(metrics=metrics, every=every))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.door.close()

    def step(self, after_s: float = 0.0) -> Snapshot:
        """Let time go by, and sweep."""
        self.ahead_s += after_s
        time.sleep(MOMENT_S)
        return self.sampler.step()

    @property
    def pid(self) -> int:
        """The worker's process id."""
        worker = self.door._worker
        assert worker
        return worker.pid

    def value(self, name: str, uuid: str, attributes: Attributes = ()) -> float | None:
        """Give what is published now, or None."""
        point = self.point(name, uuid, attributes)
        return point.value if point else None

    def point(self, name: str, uuid: str, attributes: Attributes = ()) -> Point | None:
        """Give the point that is published now, or None."""
        for reading in self.sampler.snapshot.readings:
            if (reading.metric.name, reading.device) == (name, uuid):
                return next((x for x in reading.points if x.attributes == attributes), None)
        return None

    def missing(self, name: str, uuid: str) -> Sequence[Missing]:
        """Give why points are not there."""
        gaps = self.sampler.snapshot.gaps
        return [gap.missing for gap in gaps if (gap.metric, gap.device) == (name, uuid)]
