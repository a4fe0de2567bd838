"""Faults on request: a lost GPU, a call that is refused, slow or never comes back, no driver."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from otel_gpu.catalog.reading import FIELD
from otel_gpu.model import Code, Query

INIT = "nvmlInitWithFlags"
HANDLE = "nvmlDeviceGetHandleByIndex"
ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens to a call: it takes `delay_s` longer (inf: for ever), and is refused by `code`.

    `text` is how it was asked for. `call` is an NVML function, `fieldN` for one field, or `any`
    for all that ask a GPU. It is there from `since_s` to before `until_s`, in seconds since the
    simulation began, on one GPU (`gpu` is its index) or on all.
    """

    text: str
    call: str
    gpu: int | None = None
    code: int = Code.SUCCESS
    delay_s: float = 0.0
    since_s: float = 0.0
    until_s: float = inf

    def meets(self, query: Query, gpu: int | None, now_s: float) -> bool:
        """Whether it hits this call, on this GPU (None: on the driver), at this time."""
        return (
            self.since_s <= now_s < self.until_s
            and self.gpu in {None, gpu}
            and self.call in words(query, about_gpu=gpu is not None)
        )


def words(query: Query, *, about_gpu: bool) -> tuple[str, ...]:
    """Give the words by which a fault can mean a call."""
    field = (f"field{query.args[0]}",) if query.call == FIELD and query.args else ()
    return (query.call, *field, *((ANY,) if about_gpu else ()))


def forever() -> None:
    """Do what a dead driver does: never come back."""
    threading.Event().wait()


class Faults:
    """All faults of a simulation. `sleep` and `hang` are how a delay is done."""

    def __init__(
        self,
        faults: Sequence[Fault],
        *,
        sleep: Callable[[float], None] = time.sleep,
        hang: Callable[[], None] = forever,
    ) -> None:
        self._faults = tuple(faults)
        self._sleep, self._hang = sleep, hang

    def strike(
        self, query: Query, gpu: int | None, now_s: float, *, travels: bool = False
    ) -> Fault | None:
        """Let a call take its time, and give the fault that refuses it, if there is one.

        A question that `travels` in a call with others adds no time of that call's own: the first
        of them added it.
        """
        met = [fault for fault in self._faults if fault.meets(query, gpu, now_s)]
        for fault in met:
            if not travels or fault.call not in {query.call, ANY}:
                self._delay(fault.delay_s)
        return next((fault for fault in met if fault.code), None)

    def _delay(self, seconds: float) -> None:
        if seconds == inf:
            self._hang()
        elif seconds:
            self._sleep(seconds)
