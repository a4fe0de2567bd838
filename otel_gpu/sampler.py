"""Sweeps at each metric's tier, and publishes an immutable snapshot after every sweep.

The one place where a clock meets the pure parts: `schedule` says what is due, `sweep` what to ask,
the driver answers, `ledger` folds. Everything that is published is read from `snapshot`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from otel_gpu.attribution import Source, gathered
from otel_gpu.attribution.seen import uses, view
from otel_gpu.attribution.workloads import Books, charged
from otel_gpu.clock import steady
from otel_gpu.ledger import Batch, Ledger, Page, emptied, fold, is_lost, is_stale, renewed
from otel_gpu.model import (
    Answer,
    BackendError,
    Code,
    Device,
    Event,
    EventKind,
    Metric,
    Missing,
    Query,
    Reason,
    Snapshot,
    System,
    Tier,
)
from otel_gpu.schedule import Schedule
from otel_gpu.selection import Include, Mig, chosen
from otel_gpu.sweep import OLDEST_S, Intervals, applicable, questions, shown, since

PASSING = frozenset({Code.TIMEOUT, Code.UNKNOWN})
"""Troubles of the worker: it hung or died, and a new one is up in a second or two."""

UNBIND_S = 10.0  # for a GPU to leave the driver, while nobody has the devices open
LONGEST_WAIT_S = 1.0  # a stop, or a driver that came back, is noticed within it


class Answered(Protocol):
    """One GPU's answers, in the order of its questions, and when it was asked."""

    @property
    def uuid(self) -> str:
        """The GPU."""

    @property
    def read_s(self) -> float:
        """When it was asked, in monotonic seconds, which all processes share."""

    @property
    def answers(self) -> Sequence[Answer]:
        """One for each question."""


class Driver(Protocol):
    """What the sampler needs of the driver's side; it never fails for the hardware's reasons."""

    @property
    def trouble(self) -> BackendError | None:
        """Why there is no system, while there is none."""

    @property
    def hung(self) -> Sequence[tuple[str, str, float]]:
        """Calls that did not come back: function, UUID, since when."""

    @property
    def generation(self) -> int:
        """Grows with each enumeration."""

    def events(self) -> Sequence[Event]:
        """Take what the driver told by itself since the last call."""

    def reopen(self) -> None:
        """Enumerate anew at the next call of `system`."""

    def release(self, why: str, for_s: float) -> None:
        """Let every device go at the next call of `system`, for so long."""

    def system(self, now: float) -> System | None:
        """Give the enumerated machine, opening the driver when it is time to."""

    def ask(self, questions: Sequence[tuple[str, Sequence[Query]]]) -> Sequence[Answered]:
        """Ask several GPUs in turn; one that does not answer is left out of the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to read of which GPUs, and how often.

    `inward` metrics are read for attribution only, and not shown; those of `when_shared` only of a
    GPU that several use, as they cost more than all the others.
    """

    metrics: tuple[Metric, ...]
    every: Intervals
    inward: tuple[Metric, ...] = ()
    when_shared: frozenset[str] = frozenset()
    window_s: float = 15.0
    include: Include = "all"
    mig: Mig = "both"

    @property
    def asked(self) -> tuple[Metric, ...]:
        """All that is read."""
        return self.metrics + self.inward


@dataclass(slots=True)
class Clock:
    """Monotonic seconds for intervals, Unix nanoseconds for timestamps."""

    monotonic: Callable[[], float] = field(default=time.monotonic)
    unix_ns: Callable[[], int] = field(default=steady.unix_ns)

    def at_ns(self, read_s: float) -> int:
        """Give the Unix time of a monotonic moment, which another process may have noted."""
        return self.unix_ns() - int((self.monotonic() - read_s) * 1e9)


class Turn(NamedTuple):
    """One GPU's part in a sweep."""

    device: Device
    metrics: tuple[Metric, ...]
    queries: tuple[Query, ...]


class Sampler:
    """Owns the ledger. Whoever has a thread calls `step` again and again, `pause_s` apart.

    `late` counts slots that passed while a sweep was under way; `swept_s` is when the last sweep
    ended that the driver answered (monotonic).
    """

    def __init__(
        self,
        driver: Driver,
        plan: Plan,
        *,
        sources: Sequence[Source] = (),
        clock: Clock | None = None,
        on_sweep: Callable[[float], None] = lambda _seconds: None,
    ) -> None:
        self._driver = driver
        self._plan = plan
        self._sources = sources
        self._clock = clock or Clock()
        self._on_sweep = on_sweep
        self._statics = static(plan)
        self._schedule = Schedule(plan.asked, plan.every, self._clock.monotonic())
        self._due_now: tuple[Metric, ...] = ()
        self._ledger: dict[str, Page] = {}
        self._devices: tuple[Device, ...] = ()
        self._known: dict[str, Device] = {}
        self._up: dict[str, bool] = {}
        self._heard_s: dict[str, float] = {}
        self._system = System()
        self._generation = 0
        self._told: list[Event] = []
        self._books = Books()
        self.late = 0
        self.swept_s = self._clock.monotonic()
        self.snapshot = Snapshot(trouble="no sweep was made yet")

    def adopt(self, plan: Plan, sources: Sequence[Source]) -> None:
        """Follow another plan from the next step on; counts, and what is shown, go on."""
        self._plan, self._sources, self._statics = plan, sources, static(plan)
        self._due_now += self._schedule.adopt(plan.asked, plan.every, self._clock.monotonic())
        names = {metric.name for metric in plan.asked}
        self._ledger = {uuid: limited(page, names) for uuid, page in self._ledger.items()}
        self._choose()

    def pause_s(self) -> float:
        """Give the seconds until there is something to do."""
        wait_s = self._schedule.next_s() - self._clock.monotonic()
        return max(0.0, min(wait_s, LONGEST_WAIT_S))

    def step(self) -> Snapshot:
        """Ask what is due now, and publish."""
        now_s = self._clock.monotonic()
        system = self._driver.system(now_s)
        due, missed = self._schedule.due(now_s)
        due, self._due_now = (*due, *self._due_now), ()
        self.late += missed
        if system is None:
            self._do_without_driver(now_s)
            due = ()
        elif self._driver.generation != self._generation:
            self._enumerate(system)
            due = self._plan.asked  # nothing waits for its slot to be read for the first time
        if due:
            self._sweep(due, now_s)
        self._hear()
        self.snapshot = self._published()
        return self.snapshot

    def _hear(self) -> None:
        """Keep what the driver told for `told`; follow what comes and goes."""
        events = self._driver.events()
        self._told += events
        kinds = {event.kind for event in events}
        if EventKind.UNBIND in kinds:
            self._driver.release("a GPU is leaving the driver", UNBIND_S)
        elif kinds & {EventKind.MIG, EventKind.BIND}:
            self._driver.reopen()

    def told(self) -> list[Event]:
        """Take what the driver told by itself since the last call."""
        taken, self._told = self._told, []
        return taken

    def _enumerate(self, system: System) -> None:
        """Take over a new enumeration; a GPU that was known and is gone keeps its identity."""
        self._generation = self._driver.generation
        self._system = system
        self._choose()
        here = [device.uuid for device in self._devices]
        self._ledger |= {uuid: renewed(self._ledger[uuid]) for uuid in here}

    def _choose(self) -> None:
        """Select the devices of the plan; say of those that are not there any more why not."""
        driver_version = self._system.driver_version
        named = [replace(device, driver_version=driver_version) for device in self._system.devices]
        present = {device.uuid for device in named}
        # Of a GPU that is there, an instance that is not has simply been removed.
        absent = [one for one in self._known.values() if present.isdisjoint({one.uuid, one.parent})]
        wanted = chosen((*named, *absent), self._plan.include, self._plan.mig)
        self._devices = tuple(device for device in wanted if device.uuid in present)
        self._forget(self._known.keys() - {device.uuid for device in wanted})
        self._miss([device for device in wanted if device.uuid not in present])
        here = {device.uuid: device for device in self._devices}
        self._known |= here
        self._ledger = dict.fromkeys(here, Page()) | self._ledger
        self._up |= dict.fromkeys(here, True)
        self._heard_s = dict.fromkeys(here, self._clock.monotonic()) | self._heard_s

    def _forget(self, uuids: Iterable[str]) -> None:
        for uuid in uuids:
            for kept in (self._known, self._up, self._heard_s, self._ledger):
                kept.pop(uuid, None)

    def _miss(self, gone: Sequence[Device]) -> None:
        """Say why devices are not there any more."""
        hanging = [self._known.get(uuid) for _, uuid, _ in self._driver.hung]
        stuck = {board(device) for device in hanging if device}
        for device in gone:
            if board(device) in stuck:
                self._lose([device], Reason.TIMEOUT, "left out, because a call to it hangs")
            else:
                self._lose([device], Reason.LOST, "the GPU is no longer enumerated")

    def _stuck(self) -> set[str]:
        return {uuid for _, uuid, _ in self._driver.hung}

    def _do_without_driver(self, now_s: float) -> None:
        """End all series, unless it is only the worker that is being replaced."""
        trouble = self._driver.trouble
        passing = trouble is None or trouble.code in PASSING
        if not passing or now_s - self.swept_s > OLDEST_S:
            self._lose(self._devices, Reason.NOT_READY, "the driver is not open")

    def _sweep(self, due: tuple[Metric, ...], now_s: float) -> None:
        turns = [self._turn(due, device, now_s) for device in self._devices]
        asked = [(turn.device.uuid, self._worded(turn)) for turn in turns if turn.queries]
        heard = {answered.uuid: answered for answered in self._driver.ask(asked)}
        for turn in turns:
            self._take(turn, heard.get(turn.device.uuid), now_s)
        if heard or not asked:
            self.swept_s = self._clock.monotonic()
        if asked:
            self._on_sweep(self._clock.monotonic() - now_s)

    def _worded(self, turn: Turn) -> tuple[Query, ...]:
        page = self._ledger[turn.device.uuid]
        return tuple(since(query, page) for query in turn.queries)

    def _take(self, turn: Turn, answered: Answered | None, now_s: float) -> None:
        device, metrics, queries = turn
        if answered is not None:
            answers = dict(zip(queries, answered.answers, strict=True))
            self._heard_s[device.uuid] = answered.read_s
            read_ns = self._clock.at_ns(answered.read_s)
            self._fold(Batch(device, read_ns, answered.read_s, answers), metrics)
        elif device.uuid in self._stuck():
            self._lose([device], Reason.TIMEOUT, "a call to it does not return")
        elif not queries:
            if self._up[device.uuid]:  # what needs no question is known since the enumeration
                self._fold(Batch(device, self._clock.unix_ns(), now_s, {}), metrics)
        elif now_s - self._heard_s[device.uuid] > OLDEST_S:
            self._lose([device], Reason.TIMEOUT, f"no answer for {OLDEST_S:g} s")
        # Else it stood behind one that hangs: it is asked again before its readings are stale.

    def _turn(self, due: tuple[Metric, ...], device: Device, now_s: float) -> Turn:
        page = self._ledger[device.uuid]
        if (
            not page.readings and not page.gaps
        ):  # it waits for no slot to be read for the first time
            due = self._plan.asked
        shared = self.snapshot.is_shared(device.uuid)
        named = {
            metric.name: metric
            for metric in (*due, *self._unread(page))
            if shared or metric.name not in self._plan.when_shared
        }
        metrics = applicable(named.values(), device)
        return Turn(device, metrics, questions(metrics, device, page, now_s))

    def _fold(self, batch: Batch, metrics: tuple[Metric, ...]) -> None:
        uuid = batch.device.uuid
        if is_lost(batch):
            self._lose([batch.device], Reason.LOST, "the GPU is lost or needs a reset")
            return
        if is_stale(self._ledger[uuid], batch):
            self._driver.reopen()
        self._ledger[uuid] = fold(self._ledger[uuid], batch, metrics, self._plan.window_s)
        self._up[uuid] = True

    def _lose(self, devices: Sequence[Device], reason: Reason, detail: str) -> None:
        """End the series of GPUs that do not answer: each of their metrics becomes a gap."""
        for device in devices:
            self._up[device.uuid] = False
            page = self._ledger.get(device.uuid, Page())
            metrics = applicable(self._plan.asked, device)
            self._ledger[device.uuid] = emptied(page, device, metrics, Missing(reason, detail))

    def _unread(self, page: Page) -> tuple[Metric, ...]:
        """Give the static metrics that were not read since the enumeration."""
        return tuple(metric for metric in self._statics if metric.name not in page.readings)

    def _published(self) -> Snapshot:
        now_s = self._clock.monotonic()
        readings, gaps = shown(self._ledger, self._plan.every, now_s)
        trouble, time_ns = self._driver.trouble, self._clock.unix_ns()
        seen = view(self._system.devices, readings, gaps)
        ownership = gathered([source.claims(seen) for source in self._sources], seen)
        if self._sources:
            used = uses(self._devices, readings, ownership)
            self._books = charged(self._books, used, now_s, time_ns)
        inward = {metric.name for metric in self._plan.inward}
        return Snapshot(
            time_ns=time_ns,
            read_s=now_s,
            system=self._system,
            devices=dict(self._known),
            up=dict(self._up),
            readings=tuple(one for one in readings if one.metric.name not in inward),
            gaps=tuple(gap for gap in gaps if gap.metric not in inward),
            owners=ownership.owners,
            holders=ownership.holders,
            shared=ownership.shared,
            energy=self._books.joules,
            held=self._books.seconds,
            hung=tuple((call, uuid) for call, uuid, _ in self._driver.hung),
            trouble="" if trouble is None else str(trouble),
        )

    @property
    def ledger(self) -> Ledger:
        """What is remembered between sweeps, by UUID."""
        return self._ledger


def static(plan: Plan) -> tuple[Metric, ...]:
    """Give the metrics that are read once for each enumeration."""
    return tuple(metric for metric in plan.metrics if metric.tier is Tier.STATIC)


def limited(page: Page, names: Collection[str]) -> Page:
    """Show no other metrics than these; what others counted is kept, should they come back."""
    return replace(
        page,
        readings={name: one for name, one in page.readings.items() if name in names},
        gaps={name: several for name, several in page.gaps.items() if name in names},
    )


def board(device: Device) -> str:
    """Give the UUID of the GPU that a device is, or is a part of."""
    return device.parent or device.uuid


def tiers(fast: float, default: float, slow: float) -> Mapping[Tier, float]:
    """Give the seconds of each tier that has any."""
    return {Tier.FAST: fast, Tier.DEFAULT: default, Tier.SLOW: slow}
