"""A sampler on a scripted machine with four metrics, and drivers with faults of their own."""

from collections.abc import Sequence
from dataclasses import replace

from otel_gpu.catalog.reading import call, described
from otel_gpu.model import (
    BackendError,
    Device,
    Event,
    Kind,
    Metric,
    Point,
    Query,
    Reason,
    Snapshot,
    System,
    Tier,
)
from otel_gpu.sampler import Answered, Clock, Plan, Sampler, tiers
from otel_gpu.sweep import intervals
from tests.machine import Machine, Time, driven, gpu

SECONDS = tiers(1.0, 5.0, 60.0)


def metric(name: str, tier: Tier = Tier.FAST, *, on_instance: bool = False) -> Metric:
    return Metric(
        name=f"nvidia.gpu.{name}",
        kind=Kind.GAUGE,
        unit="W",
        brief="A number.",
        read=call(name),
        tier=tier,
        on_instance=on_instance,
    )


FAST = metric("fast", on_instance=True)
DEFAULT = metric("default", Tier.DEFAULT)
SLOW = metric("slow", Tier.SLOW)
STATIC = metric("static", Tier.STATIC, on_instance=True)
INDEX = replace(STATIC, name="nvidia.gpu.index", read=described(lambda d: [Point(d.index)]))
FOUR = (FAST, DEFAULT, SLOW, STATIC)
F, D, S, ST = (Query(name) for name in ("fast", "default", "slow", "static"))

GPU = "GPU-0"


class Rig:
    """A machine, its clock and a sampler on them."""

    def __init__(self, *devices: Device, metrics: Sequence[Metric] = FOUR, **plan: object) -> None:
        self.time = Time()
        self.machine = Machine(*(devices or (gpu(),)))
        for device in self.machine.devices:
            for place, query in enumerate((F, D, S, ST)):
                self.machine.say(device.uuid, query, 11 + 2 * place)
        self.driver = driven(self.machine, self.time)
        self.sweeps: list[float] = []
        every = intervals(metrics, SECONDS, lambda _: None)
        self.sampler = Sampler(
            self.driver,
            Plan(metrics=tuple(metrics), every=every, **plan),  # type: ignore[arg-type] # by name
            clock=Clock(self.time.monotonic, self.time.unix_ns),
            on_sweep=self.sweeps.append,
        )

    def step(self, after_s: float = 0.0) -> Snapshot:
        """Let time go by, and sweep."""
        self.time.pass_by(after_s)
        return self.sampler.step()

    def asked(self, after_s: float = 0.0) -> list[str]:
        """Give what a step asks the first GPU."""
        self.machine.asked.clear()
        self.step(after_s)
        return [str(query) for uuid, query in self.machine.asked if uuid == GPU]


def shown(snapshot: Snapshot, uuid: str = GPU) -> dict[str, float]:
    return {
        reading.metric.name.removeprefix("nvidia.gpu."): reading.points[0].value
        for reading in snapshot.readings
        if reading.device == uuid
    }


def lacking(snapshot: Snapshot, uuid: str = GPU) -> dict[str, Reason]:
    return {
        gap.metric.removeprefix("nvidia.gpu."): gap.missing.reason
        for gap in snapshot.gaps
        if gap.device == uuid
    }


class Silent:
    """A driver that stops answering when told to, and never says why."""

    trouble: BackendError | None = None
    hung: tuple[tuple[str, str, float], ...] = ()
    generation = 1

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.quiet = False

    def events(self) -> list[Event]:
        return []

    def reopen(self) -> None:
        self._rig.driver.reopen()

    def release(self, why: str, for_s: float) -> None:
        self._rig.driver.release(why, for_s)

    def system(self, now: float) -> System | None:
        return self._rig.driver.system(now)

    def ask(self, questions: Sequence[tuple[str, Sequence[Query]]]) -> Sequence[Answered]:
        return [] if self.quiet else self._rig.driver.ask(questions)


class Forgetful(Silent):
    """A driver that gives no answers of one GPU."""

    forgotten = ""

    def ask(self, questions: Sequence[tuple[str, Sequence[Query]]]) -> Sequence[Answered]:
        answered = self._rig.driver.ask(questions)
        return [one for one in answered if one.uuid != self.forgotten]


class Hanging(Silent):
    """A driver whose first GPU hangs: it says so, and enumerates without it."""

    def __init__(self, rig: Rig) -> None:
        super().__init__(rig)
        self.exclude: frozenset[str] = frozenset()

    def hang(self, *uuids: str) -> None:
        self.hung = (("nvmlDeviceGetPowerUsage", uuids[0], 1.0),)
        self.exclude = frozenset(uuids)
        self.generation += 1

    def system(self, now: float) -> System | None:
        del now
        return self._rig.machine.open(self.exclude)


class Stuck(Forgetful):
    """A driver whose call to one GPU did not return: no answer, and it says so."""

    def ask(self, questions: Sequence[tuple[str, Sequence[Query]]]) -> Sequence[Answered]:
        if self.forgotten:
            self.hung = (("nvmlDeviceGetPowerUsage", self.forgotten, 1.0),)
        return super().ask(questions)
