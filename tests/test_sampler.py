"""The sampler on a scripted machine, with a clock that only the test moves."""

from dataclasses import FrozenInstanceError

import pytest

from otel_gpu.attribution import Claims, Health, View
from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.census import select
from otel_gpu.model import (
    Answer,
    BackendError,
    Code,
    Owner,
    Profile,
    Query,
    Reason,
)
from otel_gpu.sampler import LONGEST_WAIT_S, Clock, Plan, Sampler
from otel_gpu.sweep import intervals
from tests.machine import gpu, instance
from tests.sampling import (
    DEFAULT,
    FAST,
    FOUR,
    GPU,
    INDEX,
    SECONDS,
    SLOW,
    ST,
    STATIC,
    D,
    F,
    Rig,
    lacking,
    shown,
)


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

    def test_what_needs_no_question_is_back_with_the_driver(self) -> None:
        rig = Rig(metrics=[INDEX])
        rig.step()
        rig.machine.trouble = BackendError(Code.DRIVER_NOT_LOADED, "gone")
        rig.driver.reopen()
        assert shown(rig.step(1.0)) == {}
        rig.machine.trouble = None
        snapshot = rig.step(1.0)
        assert (shown(snapshot), snapshot.up) == ({"index": 0}, {GPU: True})

    def test_what_needs_no_question_is_not_shown_of_a_gpu_that_is_lost(self) -> None:
        rig = Rig(metrics=[FAST, DEFAULT, INDEX])
        rig.machine.answers[GPU, F] = Answer(Code.NOT_SUPPORTED)
        assert shown(rig.step()) == {"default": 13, "index": 0}
        rig.machine.refuses[GPU] = Code.GPU_IS_LOST
        rig.step(5.0)
        assert rig.asked(1.0) == []
        assert shown(rig.sampler.snapshot) == {}
        assert rig.sampler.snapshot.up == {GPU: False}

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

    def claims(self, view: View) -> Claims:
        return Claims({device.uuid: (self.owner,) for device in view.devices[:1]})

    def health(self) -> Health:
        return Health("owned", up=True)

    def close(self) -> None:
        """Hold nothing."""


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
