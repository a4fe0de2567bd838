"""The sampler when drivers, workers and GPUs fail: what ends, what stands, and what comes back."""

from dataclasses import replace

import pytest

from otel_gpu.model import (
    Answer,
    BackendError,
    Code,
    Reason,
    Tier,
)
from otel_gpu.sampler import Clock, Plan, Sampler
from otel_gpu.sweep import intervals
from tests.machine import gpu, instance
from tests.sampling import (
    DEFAULT,
    FAST,
    FOUR,
    GPU,
    SECONDS,
    ST,
    STATIC,
    D,
    F,
    Forgetful,
    Hanging,
    Rig,
    Silent,
    Stuck,
    lacking,
    shown,
)


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
        silent = Silent(rig)
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
        assert shown(snapshot) == {"fast": 11}  # it may stand behind another GPU that hangs
        assert snapshot.up == {GPU: True}

    def test_a_driver_that_was_closed_is_opened_again(self) -> None:
        rig = Rig()
        rig.step()
        rig.driver.close()
        rig.machine.say(GPU, ST, 19)
        assert shown(rig.step(1.0))["static"] == 19
        assert rig.driver.generation == 2

    def test_an_instance_whose_handle_went_old_is_enumerated_anew_once(self) -> None:
        slice_ = instance(gpu(0))
        rig = Rig(gpu(0), slice_)
        rig.step()
        rig.machine.answers[slice_.uuid, F] = Answer(Code.INVALID_ARGUMENT)
        for _ in range(5):
            rig.step(1.0)
        assert rig.driver.generation == 2

    def test_a_gpu_that_refuses_what_it_served_is_not_enumerated_anew(self) -> None:
        rig = Rig()
        rig.step()
        rig.machine.answers[GPU, F] = Answer(Code.INVALID_ARGUMENT)
        for _ in range(5):
            rig.step(1.0)
        assert rig.driver.generation == 1

    def test_a_machine_without_gpus_is_no_trouble(self) -> None:
        rig = Rig()
        rig.machine.devices.clear()
        snapshot = rig.step(1.0)
        assert (snapshot.trouble, snapshot.devices, snapshot.readings) == ("", {}, ())
        assert rig.sampler.swept_s == rig.time.now_s


class TestWorker:
    """A driver's worker that is being replaced is not a machine without a driver."""

    @pytest.mark.parametrize("code", [Code.TIMEOUT, Code.UNKNOWN])
    def test_while_it_is_replaced_the_readings_stand_until_they_would_be_stale(
        self, code: int
    ) -> None:
        rig = Rig(metrics=[FAST, STATIC])
        rig.step()
        rig.machine.trouble = BackendError(code, "the worker is gone")
        rig.driver.reopen()
        snapshot = rig.step(9.0)
        assert shown(snapshot) == {"fast": 11, "static": 17}
        assert (snapshot.up, snapshot.trouble) == ({GPU: True}, "the worker is gone")
        snapshot = rig.step(1.1)
        assert shown(snapshot) == {}
        assert lacking(snapshot) == {"fast": Reason.NOT_READY, "static": Reason.NOT_READY}
        assert snapshot.up == {GPU: False}

    def test_a_gpu_that_never_gets_its_turn_is_down_after_ten_seconds(self) -> None:
        rig = Rig(gpu(0), gpu(1), metrics=[FAST, STATIC])
        driver = Forgetful(rig)
        clock = Clock(rig.time.monotonic, rig.time.unix_ns)
        sampler = Sampler(driver, Plan(metrics=(FAST, STATIC), every={FAST.name: 1.0}), clock=clock)
        for _ in range(30):
            rig.time.pass_by(1.0)
            sampler.step()
        driver.forgotten = "GPU-1"
        for _ in range(10):
            rig.time.pass_by(1.0)
            snapshot = sampler.step()
            assert shown(snapshot, "GPU-1") == {"fast": 11, "static": 17}
        rig.time.pass_by(1.0)
        snapshot = sampler.step()
        assert set(lacking(snapshot, "GPU-1").values()) == {Reason.TIMEOUT}
        assert snapshot.up == {"GPU-0": True, "GPU-1": False}
        driver.forgotten = ""
        rig.time.pass_by(1.0)
        assert sampler.step().up == {"GPU-0": True, "GPU-1": True}


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


class TestHang:
    def test_a_gpu_whose_call_does_not_return_ends_at_once_and_the_others_stand(self) -> None:
        rig = Rig(gpu(0), gpu(1))
        driver = Stuck(rig)
        clock = Clock(rig.time.monotonic, rig.time.unix_ns)
        every = intervals(FOUR, SECONDS, lambda _: None)
        sampler = Sampler(driver, Plan(metrics=FOUR, every=every), clock=clock)
        sampler.step()
        driver.forgotten = "GPU-0"
        rig.time.pass_by(1.0)
        snapshot = sampler.step()
        assert set(lacking(snapshot, "GPU-0").values()) == {Reason.TIMEOUT}
        assert snapshot.up == {"GPU-0": False, "GPU-1": True}
        assert set(shown(snapshot, "GPU-1")) == {"fast", "default", "slow", "static"}

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
