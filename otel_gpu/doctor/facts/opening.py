"""What happened when the driver was opened, and what one sweep over its GPUs gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from otel_gpu.doctor.matrix import Matrix
from otel_gpu.model import System


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why the driver is not open: a code of nvml.h, and what was tried."""

    code: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """`hung` are calls that did not return, with the UUID or the index of their GPU, or "".

    `is_late`: not done when doctor's time was up, though no call hung. `is_persistent` tells
    by UUID whether persistence mode is on, where that is known.
    """

    system: System | None = None
    trouble: Trouble | None = None
    hung: tuple[tuple[str, str], ...] = ()
    has_died: bool = False
    is_late: bool = False
    is_persistent: Mapping[str, bool] = field(default_factory=dict)
    matrix: Matrix = field(default_factory=Matrix)
    seconds: float = 0.0  # that opening took

    @property
    def has_gpus(self) -> bool:
        """Whether any GPU answered."""
        return any(self.matrix.up)
