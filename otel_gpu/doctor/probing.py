"""Opens the driver and sweeps its GPUs once, as the agent would: in a worker, within a limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.census import select
from otel_gpu.doctor.facts.opening import Opening, Trouble
from otel_gpu.doctor.matrix import support
from otel_gpu.model import Device, Metric, Profile, Query, Reason, Snapshot, System
from otel_gpu.sampler import Plan, Sampler, tiers
from otel_gpu.sweep import intervals
from otel_gpu.worker.supervisor import Supervisor

AGAIN_S = 0.05
PACE_S = 0.25  # between two sweeps: what is measured over a span needs 0.1 s of it
WINDOW_S = 1.0  # of the driver's ring buffers, which hold more than that already
PERSISTENCE = Query("nvmlDeviceGetPersistenceMode")
NEEDS_TWO = frozenset({Reason.NOT_READY, Reason.COVERAGE})


def everything() -> tuple[Metric, ...]:
    """Give all metrics but those that are never on unless they are named."""
    return select(CATALOG, Profile.FULL)


def probe(backend: str, metrics: Sequence[Metric], until_s: float, call_s: float) -> Opening:
    """Open a backend (see `open_backend`) and read these metrics of every GPU.

    A call of the enumeration, or one GPU's sweep, hangs when it takes longer than `call_s`. Ends
    by `until_s` (monotonic), plus the few seconds that it takes to be rid of a worker.
    """
    driver = Supervisor(backend, deadline_s=call_s, open_deadline_s=call_s)
    began_s = time.monotonic()
    with limited(driver, until_s) as is_over:
        system = opened(driver, until_s)
        seconds = time.monotonic() - began_s
        snapshot = swept(driver, metrics, until_s) if system else Snapshot()
        persistence = persistent(driver, system.devices) if system else {}
        trouble = driver.trouble
        return Opening(
            system=system,
            trouble=Trouble(trouble.code, trouble.text) if trouble else None,
            hung=tuple((hang.call, hang.uuid) for hang in driver.hung),
            has_died=bool(driver.restarts["died"]),
            is_late=is_over.is_set() and not driver.hung,
            is_persistent=persistence,
            matrix=support(snapshot, metrics),
            seconds=seconds,
        )


@contextmanager
def limited(driver: Supervisor, until_s: float) -> Iterator[threading.Event]:
    """Interrupt the driver when the time is up, say so by the event, and close it at the end."""
    is_over = threading.Event()

    def end() -> None:
        is_over.set()
        driver.interrupt()

    timer = threading.Timer(max(0.0, until_s - time.monotonic()), end)
    timer.daemon = True
    timer.start()
    try:
        yield is_over
    finally:
        timer.cancel()
        driver.close()


def opened(driver: Supervisor, until_s: float) -> System | None:
    """Open the driver; where one GPU hangs, try once more without it, to read the others."""
    system = driver.system(time.monotonic())
    while system is None and has_suspect(driver) and is_worth_a_try(driver, until_s):
        system = driver.system(time.monotonic())
    return system


def swept(driver: Supervisor, metrics: Sequence[Metric], until_s: float) -> Snapshot:
    """Read every GPU once, and once more where something is measured between two reads."""
    every = intervals(metrics, tiers(PACE_S, PACE_S, PACE_S), lambda _name: None)
    sampler = Sampler(driver, Plan(metrics=tuple(metrics), every=every, window_s=WINDOW_S))
    snapshot = sampler.step()
    while snapshot.trouble and is_worth_a_try(driver, until_s):
        snapshot = sampler.step()
    if not snapshot.trouble and any(gap.missing.reason in NEEDS_TWO for gap in snapshot.gaps):
        threading.Event().wait(PACE_S)
        snapshot = sampler.step()
    return snapshot


def has_suspect(driver: Supervisor) -> bool:
    """Whether it is known which GPU hangs, so that it can be left out."""
    return any(hang.uuid for hang in driver.hung)


def is_worth_a_try(driver: Supervisor, until_s: float) -> bool:
    """Wait a little, as the supervisor lets a second pass; false when it failed twice."""
    threading.Event().wait(AGAIN_S)
    return sum(driver.restarts.values()) < 2 and time.monotonic() < until_s


def persistent(driver: Supervisor, devices: Sequence[Device]) -> Mapping[str, bool]:
    """Ask each GPU whether persistence mode is on (nvmlDeviceGetPersistenceMode)."""
    asked = [(device.uuid, (PERSISTENCE,)) for device in devices if not device.is_instance]
    answers = {one.uuid: one.answers[0] for one in driver.ask(asked)}
    return {uuid: bool(answer.value) for uuid, answer in answers.items() if answer.ok}
