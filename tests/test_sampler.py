"""The sampler on a scripted machine, with a clock that only the test moves."""

from collections.abc import Iterable, Sequence
from dataclasses import FrozenInstanceError, replace

import pytest

from otel_gpu.attribution import Health, Owners
from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.census import select
from otel_gpu.catalog.reading import call, described
from otel_gpu.model import (
    Answer,
    BackendError,
    Code,
    Device,
    Kind,
    Metric,
    Owner,
    Point,
    Profile,
    Query,
    Reason,
    Snapshot,
    System,
    Tier,
)
from otel_gpu.sampler import LONGEST_WAIT_S, Answered, Clock, Plan, Sampler, tiers
from otel_gpu.sweep import intervals
from tests.machine import Machine, Time, driven, gpu, instance

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


class TestTiers:
    def test_before_the_first_sweep_the_snapshot_says_so(self) -> None:
        assert Rig().sampler.snapshot.trouble == "no sweep was made yet"

    def test_the_first_sweep_reads_everything(self) -> None:
        rig = Rig()
        assert shown(rig.step()) == {"fast": 11, "default": 13, "slow": 15, "static": 17}

    def test_each_tier_is_asked_at_its_own_pace_and_static_once(self) -> None:
        rig = Rig()
        for second in range(121):
            rig.step(1.0 if second else 0.0)
        counts = {name: rig.machine.times(GPU, Query(name)) for name in ("fast", "default", "slow")}
        assert counts == {"fast": 121, "default": 25, "slow": 3}
        assert rig.machine.times(GPU, ST) == 1

    def test_between_its_slots_a_reading_stays_as_it_was_read(self) -> None:
        rig = Rig()
        rig.step()
        rig.machine.say(GPU, D, 99)
        assert shown(rig.step(4.0))["default"] == 13
        assert shown(rig.step(1.0))["default"] == 99

    def test_a_step_before_the_next_slot_asks_nothing_and_publishes_again(self) -> None:
        rig = Rig()
        first = rig.step()
        assert rig.asked(0.5) == []
        assert rig.sampler.snapshot is not first
        assert shown(rig.sampler.snapshot) == shown(first)
        assert len(rig.sweeps) == 1

    def test_a_static_metric_that_failed_is_asked_again_until_it_is_read(self) -> None:
        rig = Rig()
        rig.machine.answers[GPU, ST] = Answer(Code.NOT_READY)
        assert lacking(rig.step())["static"] is Reason.NOT_READY
        assert "static" in rig.asked(1.0)
        rig.machine.say(GPU, ST, 17)
        assert shown(rig.step(1.0))["static"] == 17
        assert "static" not in rig.asked(1.0)

    def test_a_static_metric_that_is_not_supported_is_left_alone_for_an_hour(self) -> None:
        rig = Rig()
        rig.machine.answers[GPU, ST] = Answer(Code.NOT_SUPPORTED)
        rig.step()
        assert "static" not in rig.asked(3000.0)
        assert "static" in rig.asked(1000.0)

    def test_late_slots_are_counted(self) -> None:
        rig = Rig(metrics=[FAST])
        rig.step()
        rig.step(3.2)
        assert rig.sampler.late == 2
        rig.step(0.8)
        assert rig.sampler.late == 2

    def test_a_pause_ends_at_the_next_slot_and_lasts_a_second_at_most(self) -> None:
        rig = Rig(metrics=[FAST])
        assert rig.sampler.pause_s() == 0
        rig.step()
        assert rig.sampler.pause_s() == 1.0
        rig.time.pass_by(0.75)
        assert rig.sampler.pause_s() == 0.25
        slow = Rig(metrics=[SLOW])
        slow.step()
        assert slow.sampler.pause_s() == LONGEST_WAIT_S

    def test_the_time_of_a_sweep_is_told_and_when_it_ended(self) -> None:
        rig = Rig(metrics=[FAST])

        def slow_answer() -> Answer:
            rig.time.pass_by(0.25)
            return Answer(Code.SUCCESS, 5)

        rig.machine.answers[GPU, F] = slow_answer
        rig.step()
        assert rig.sweeps == [0.25]
        assert rig.sampler.swept_s == rig.time.now_s

    def test_what_needs_no_question_is_there_even_where_nothing_else_is_asked(self) -> None:
        rig = Rig(metrics=[INDEX])
        assert shown(rig.step()) == {"index": 0}
        assert rig.step(1.0).up == {GPU: True}
        assert rig.sweeps == []

    def test_a_snapshot_has_the_time_of_its_step(self) -> None:
        rig = Rig()
        snapshot = rig.step(2.0)
        assert snapshot.time_ns == rig.time.unix_ns()
        assert snapshot.read_s == rig.time.now_s
        assert {reading.time_ns for reading in snapshot.readings} == {rig.time.unix_ns()}


class TestSnapshot:
    def test_it_cannot_be_changed(self) -> None:
        snapshot = Rig().step()
        with pytest.raises(FrozenInstanceError):
            snapshot.trouble = "none"  # type: ignore[misc] # which is what is tested

    def test_later_sweeps_leave_an_older_one_as_it_was(self) -> None:
        rig = Rig(gpu(0), gpu(1))
        before = rig.step()
        kept = (dict(before.devices), dict(before.up), before.readings, before.gaps)
        rig.machine.refuses["GPU-0"] = Code.GPU_IS_LOST
        rig.machine.devices.append(gpu(2))
        rig.driver.reopen()
        rig.step(1.0)
        assert (before.devices, before.up, before.readings, before.gaps) == kept

    def test_stale_is_never_shown(self) -> None:
        rig = Rig(metrics=[FAST, STATIC])
        rig.step()
        assert shown(rig.step(0.5)) == {"fast": 11, "static": 17}
        rig.machine.answers[GPU, F] = Answer(Code.NOT_READY)
        snapshot = rig.step(0.5)
        assert shown(snapshot) == {"static": 17}
        assert lacking(snapshot) == {"fast": Reason.NOT_READY}

    def test_a_reading_that_is_not_renewed_goes_after_ten_seconds(self) -> None:
        """The slow tier asks once a minute; between, nothing renews the fast reading."""
        rig = Rig(metrics=[FAST])
        silent = SilentAfterOne(rig)
        sampler = Sampler(
            silent,
            Plan(metrics=(FAST,), every={FAST.name: 3.0}),
            clock=Clock(rig.time.monotonic, rig.time.unix_ns),
        )
        assert shown(sampler.step()) == {"fast": 11}
        rig.time.pass_by(2.9)
        assert shown(sampler.step()) == {"fast": 11}
        rig.time.pass_by(7.2)
        silent.quiet = True
        snapshot = sampler.step()
        assert shown(snapshot) == {}
        assert set(lacking(snapshot).values()) <= {Reason.STALE, Reason.TIMEOUT}


class SilentAfterOne:
    """A driver that stops answering when told to, and never says why."""

    trouble: BackendError | None = None
    hung: tuple[tuple[str, str, float], ...] = ()
    generation = 1

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.quiet = False

    def system(self, now: float) -> System | None:
        return self._rig.driver.system(now)

    def ask(self, questions: Sequence[tuple[str, Sequence[Query]]]) -> Sequence[Answered]:
        return [] if self.quiet else self._rig.driver.ask(questions)


class TestDriver:
    GONE = BackendError(Code.DRIVER_NOT_LOADED, "the driver is not loaded", "Load it")

    def test_a_driver_that_is_not_there_is_said_and_tried_again(self) -> None:
        rig = Rig()
        rig.machine.trouble = self.GONE
        snapshot = rig.step()
        assert snapshot.trouble == "the driver is not loaded. Load it"
        assert (snapshot.readings, snapshot.devices) == ((), {})
        assert rig.sweeps == []

    def test_a_driver_that_comes_is_read_in_full_at_once(self) -> None:
        rig = Rig()
        rig.machine.trouble = self.GONE
        rig.step()
        rig.machine.trouble = None
        snapshot = rig.step(1.0)
        assert snapshot.trouble == ""
        assert set(shown(snapshot)) == {"fast", "default", "slow", "static"}
        assert rig.asked(1.0) == ["fast"]

    def test_a_driver_that_goes_ends_every_series_and_keeps_the_identity(self) -> None:
        rig = Rig()
        rig.step()
        rig.machine.trouble = self.GONE
        rig.driver.reopen()
        snapshot = rig.step(1.0)
        assert shown(snapshot) == {}
        assert lacking(snapshot) == dict.fromkeys(
            ("fast", "default", "slow", "static"), Reason.NOT_READY
        )
        assert snapshot.up == {GPU: False}
        assert snapshot.devices[GPU].serial == gpu().serial
        assert snapshot.system.driver_version == "580.159.04"

    def test_a_new_driver_is_named_on_every_gpu(self) -> None:
        rig = Rig()
        assert rig.step().devices[GPU].driver_version == "580.159.04"
        rig.machine.driver_version = "595.45.04"
        rig.driver.reopen()
        assert rig.step(1.0).devices[GPU].driver_version == "595.45.04"

    def test_a_new_enumeration_reads_static_metrics_again_and_probes_anew(self) -> None:
        rig = Rig()
        rig.machine.answers[GPU, D] = Answer(Code.NOT_SUPPORTED)
        rig.step()
        rig.machine.say(GPU, ST, 19)
        rig.machine.say(GPU, D, 21)
        assert shown(rig.step(5.0))["static"] == 17
        rig.driver.reopen()
        snapshot = rig.step(1.0)
        assert shown(snapshot)["static"] == 19
        assert shown(snapshot)["default"] == 21
        assert lacking(snapshot) == {}

    def test_a_sweep_that_nobody_answers_does_not_count_as_swept(self) -> None:
        rig = Rig(metrics=[FAST])
        silent = SilentAfterOne(rig)
        sampler = Sampler(
            silent,
            Plan(metrics=(FAST,), every={FAST.name: 1.0}),
            clock=Clock(rig.time.monotonic, rig.time.unix_ns),
        )
        sampler.step()
        swept_s = sampler.swept_s
        silent.quiet = True
        rig.time.pass_by(1.0)
        snapshot = sampler.step()
        assert sampler.swept_s == swept_s
        assert lacking(snapshot) == {"fast": Reason.TIMEOUT}
        assert snapshot.up == {GPU: False}

    def test_a_driver_that_was_closed_is_opened_again(self) -> None:
        rig = Rig()
        rig.step()
        rig.driver.close()
        rig.machine.say(GPU, ST, 19)
        assert shown(rig.step(1.0))["static"] == 19
        assert rig.driver.generation == 2

    def test_a_machine_without_gpus_is_no_trouble(self) -> None:
        rig = Rig()
        rig.machine.devices.clear()
        snapshot = rig.step(1.0)
        assert (snapshot.trouble, snapshot.devices, snapshot.readings) == ("", {}, ())
        assert rig.sampler.swept_s == rig.time.now_s


class TestLost:
    def test_a_lost_gpu_ends_its_series_and_keeps_its_identity(self) -> None:
        rig = Rig(gpu(0), gpu(1))
        rig.step()
        rig.machine.refuses["GPU-0"] = Code.GPU_IS_LOST
        snapshot = rig.step(1.0)
        assert shown(snapshot, "GPU-0") == {}
        assert set(lacking(snapshot, "GPU-0").values()) == {Reason.LOST}
        assert set(lacking(snapshot, "GPU-0")) == {"fast", "default", "slow", "static"}
        assert snapshot.up == {"GPU-0": False, "GPU-1": True}
        assert snapshot.devices["GPU-0"].pci_address == gpu(0).pci_address

    def test_the_other_gpus_go_on(self) -> None:
        rig = Rig(gpu(0), gpu(1))
        rig.machine.refuses["GPU-0"] = Code.RESET_REQUIRED
        snapshot = rig.step()
        assert set(shown(snapshot, "GPU-1")) == {"fast", "default", "slow", "static"}

    def test_a_gpu_that_comes_back_is_read_again(self) -> None:
        rig = Rig()
        rig.step()
        rig.machine.refuses[GPU] = Code.GPU_IS_LOST
        rig.step(1.0)
        del rig.machine.refuses[GPU]
        snapshot = rig.step(1.0)
        assert snapshot.up == {GPU: True}
        assert shown(snapshot) == {"fast": 11, "static": 17}
        rig.driver.reopen()
        assert set(shown(rig.step(1.0))) == {"fast", "default", "slow", "static"}

    def test_a_gpu_that_is_not_enumerated_any_more_is_lost(self) -> None:
        rig = Rig(gpu(0), gpu(1))
        rig.step()
        del rig.machine.devices[0]
        rig.driver.reopen()
        snapshot = rig.step(1.0)
        assert set(lacking(snapshot, "GPU-0").values()) == {Reason.LOST}
        assert snapshot.up == {"GPU-0": False, "GPU-1": True}
        assert set(snapshot.devices) == {"GPU-0", "GPU-1"}
        assert "fast" in shown(snapshot, "GPU-1")

    def test_a_gpu_that_is_back_after_that_is_the_one_it_was(self) -> None:
        rig = Rig(gpu(0), gpu(1))
        rig.step()
        first = rig.machine.devices.pop(0)
        rig.driver.reopen()
        rig.step(1.0)
        rig.machine.devices.append(replace(first, index=1))
        rig.driver.reopen()
        snapshot = rig.step(1.0)
        assert snapshot.up["GPU-0"]
        assert lacking(snapshot, "GPU-0") == {}
        assert set(shown(snapshot, "GPU-0")) == {"fast", "default", "slow", "static"}

    def test_one_question_that_gets_unknown_error_does_not_lose_the_gpu(self) -> None:
        rig = Rig(metrics=[FAST, replace(DEFAULT, tier=Tier.SLOW)])
        rig.step()
        rig.machine.answers[GPU, F] = Answer(Code.UNKNOWN)
        snapshot = rig.step(1.0)
        assert snapshot.up == {GPU: True}
        assert shown(snapshot) == {"default": 13}


class Hanging(SilentAfterOne):
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


class TestHang:
    def sampler(self, rig: Rig, driver: Hanging) -> Sampler:
        clock = Clock(rig.time.monotonic, rig.time.unix_ns)
        every = intervals(FOUR, SECONDS, lambda _: None)
        return Sampler(driver, Plan(metrics=FOUR, every=every), clock=clock)

    def test_a_gpu_that_is_left_out_because_it_hangs_is_not_called_lost(self) -> None:
        rig = Rig(gpu(0), gpu(1))
        driver = Hanging(rig)
        sampler = self.sampler(rig, driver)
        sampler.step()
        driver.hang("GPU-0")
        rig.time.pass_by(1.0)
        snapshot = sampler.step()
        assert set(lacking(snapshot, "GPU-0").values()) == {Reason.TIMEOUT}
        assert snapshot.hung == (("nvmlDeviceGetPowerUsage", "GPU-0"),)
        assert snapshot.up == {"GPU-0": False, "GPU-1": True}

    def test_its_instances_and_their_gpu_share_its_fate(self) -> None:
        parent, slice_ = gpu(0), instance(gpu(0))
        rig = Rig(parent, slice_, gpu(1))
        driver = Hanging(rig)
        sampler = self.sampler(rig, driver)
        sampler.step()
        driver.hang(slice_.uuid, parent.uuid)
        rig.time.pass_by(1.0)
        snapshot = sampler.step()
        for uuid in (parent.uuid, slice_.uuid):
            assert set(lacking(snapshot, uuid).values()) == {Reason.TIMEOUT}, uuid


class TestSelection:
    def test_a_gpu_that_is_not_selected_is_neither_asked_nor_shown(self) -> None:
        rig = Rig(gpu(0), gpu(1), include=[1])
        snapshot = rig.step()
        assert set(snapshot.devices) == set(snapshot.up) == {"GPU-1"}
        assert {uuid for uuid, _ in rig.machine.asked} == {"GPU-1"}

    def test_an_instance_is_asked_only_for_what_is_its_own(self) -> None:
        rig = Rig(gpu(0), instance(gpu(0)))
        snapshot = rig.step()
        assert shown(snapshot, "MIG-0-1") == {"fast": 11, "static": 17}
        assert lacking(snapshot, "MIG-0-1") == {}
        assert set(shown(snapshot, "GPU-0")) == {"fast", "default", "slow", "static"}

    @pytest.mark.parametrize(
        ("mig", "expected"),
        [
            ("gpus", {"GPU-0", "GPU-1"}),
            ("instances", {"GPU-1", "MIG-0-1"}),
            ("both", {"GPU-0", "GPU-1", "MIG-0-1"}),
        ],
    )
    def test_mig_says_whose_series_there_are(self, mig: str, expected: set[str]) -> None:
        rig = Rig(gpu(0), instance(gpu(0)), gpu(1), mig=mig)
        assert {reading.device for reading in rig.step().readings} == expected

    @pytest.mark.parametrize("mig", ["both", "instances"])
    def test_an_instance_that_was_removed_is_forgotten_and_not_lost(self, mig: str) -> None:
        rig = Rig(gpu(0), instance(gpu(0), 1), instance(gpu(0), 2), mig=mig)
        rig.step()
        rig.machine.devices.pop()
        rig.driver.reopen()
        snapshot = rig.step(1.0)
        assert "MIG-0-2" not in snapshot.devices
        assert "MIG-0-2" not in snapshot.up
        assert lacking(snapshot, "MIG-0-2") == {}
        assert "MIG-0-1" in snapshot.up

    def test_an_instance_whose_gpu_is_gone_is_lost_with_it(self) -> None:
        rig = Rig(gpu(0), instance(gpu(0), 1), gpu(1))
        rig.step()
        rig.machine.devices[:2] = []
        rig.driver.reopen()
        snapshot = rig.step(1.0)
        assert snapshot.up == {"GPU-0": False, "MIG-0-1": False, "GPU-1": True}


class Owned:
    """A source that says who holds the first GPU that it is asked about."""

    owner = Owner((("k8s.pod.name", "train-0"),))

    def owners(self, devices: Iterable[Device]) -> Owners:
        return {next(iter(devices)).uuid: (self.owner,)} if devices else {}

    def health(self) -> Health:
        return Health("owned", up=True)


def test_owners_are_part_of_the_snapshot() -> None:
    rig = Rig()
    clock = Clock(rig.time.monotonic, rig.time.unix_ns)
    plan = Plan(metrics=FOUR, every={})
    sampler = Sampler(rig.driver, plan, sources=[Owned()], clock=clock)
    assert sampler.step().owners == {GPU: (Owned.owner,)}


def test_the_standard_profile_of_the_catalog_is_read_of_a_machine_that_answers_nothing() -> None:
    metrics = select(CATALOG, Profile.STANDARD)
    every = intervals(metrics, SECONDS, lambda _: None)
    rig = Rig()
    rig.machine.answers.clear()
    sampler = Sampler(
        rig.driver,
        Plan(metrics=metrics, every=every),
        clock=Clock(rig.time.monotonic, rig.time.unix_ns),
    )
    snapshot = sampler.step()
    assert snapshot.up == {GPU: True}
    assert [reading.metric.name for reading in snapshot.readings] == ["nvidia.gpu.info"]
    assert {gap.missing.reason for gap in snapshot.gaps} == {Reason.UNSUPPORTED}
    rig.machine.asked.clear()
    rig.time.pass_by(1.0)
    sampler.step()
    assert rig.machine.asked == []
    assert sampler.ledger[GPU].refused
