"""What becomes of faults of the driver and of the hardware: through the real worker and sampler."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from otel_gpu.model import Code, Reason, Refused
from otel_gpu.worker import suspects
from tests.fake_nvml.library import Build
from tests.fake_nvml.machine import EVERYTHING, FIELDS, MIG_CHANGED, XID, FakeNvml
from tests.fake_nvml.site import DEADLINE_S, Site
from tests.running import otel_gpu

POWER, ENERGY, TEMPERATURE = "hw.power", "hw.energy", "hw.temperature"
MEMORY, REPLAYS = "hw.gpu.memory.usage", "nvidia.gpu.pcie.replays"
GPU_SENSOR = (("hw.sensor_location", "gpu"),)
UUIDS = ("GPU-a", "GPU-b", "GPU-c")


def three(fake: FakeNvml) -> None:
    """Put in three GPUs that draw 100, 101 and 102 W."""
    for index, uuid in enumerate(UUIDS):
        gpu = fake.gpu(index, uuid)
        gpu.field(186, 100_000 + 1000 * index, "uint")
        gpu.says("nvmlDeviceGetTotalEnergyConsumption", 5_000_000 + index)
        gpu.says("nvmlDeviceGetTemperature(0)", 40 + index)
    fake.write()


def watts(site: Site) -> list[float | None]:
    """Give the power of the three, None where it is not published."""
    return [site.value(POWER, uuid) for uuid in UUIDS]


class TestAnOlderDriver:
    LACKS = frozenset(
        {
            "nvmlDeviceGetTemperatureV",
            "nvmlDeviceGetMarginTemperature",
            "nvmlDeviceGetCurrentClocksEventReasons",
            "nvmlDeviceGetSupportedClocksEventReasons",
        }
    )

    @pytest.fixture
    def old(self, build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
        fake = FakeNvml(tmp_path / "machine", build(self.LACKS))
        fake.driver("525.147.05", cuda=12000)
        for name, value in fake.environ.items():
            monkeypatch.setenv(name, value)
        return fake

    def test_is_asked_by_the_functions_that_it_has(self, old: FakeNvml) -> None:
        gpu = old.gpu(0, "GPU-a")
        gpu.says("nvmlDeviceGetTemperature(0)", 61)
        gpu.says("nvmlDeviceGetTemperatureV", {"temperature": 99})  # which nobody can reach
        gpu.says("nvmlDeviceGetCurrentClocksThrottleReasons", 0x4)
        gpu.says("nvmlDeviceGetSupportedClocksThrottleReasons", 0x5)
        old.write()
        status, margin = "nvidia.gpu.clock.reason.status", "nvidia.gpu.temperature.margin"
        with Site(TEMPERATURE, status, margin) as site:
            site.step()
            assert site.value(TEMPERATURE, "GPU-a", GPU_SENSOR) == 61
            reasons = {
                reason: site.value(status, "GPU-a", (("nvidia.gpu.clock.reason", reason),))
                for reason in ("idle", "sw_power_cap", "hw_slowdown")
            }
            assert reasons == {"idle": 0, "sw_power_cap": 1, "hw_slowdown": None}
            (gap,) = site.missing(margin, "GPU-a")
            assert gap.reason is Reason.UNSUPPORTED
            assert "not in this driver's library" in gap.detail

    # By the headers of CUDA 12.9.79, 13.0.39 and 13.0.87: HW_THERM_SLOWDOWN was 252, and is 270;
    # the other number is, or was, something else.
    @pytest.mark.parametrize(
        ("version", "number", "other"),
        [
            ("575.57.08", 252, 270),
            ("580.65.06", 252, 270),
            ("580.95.05", 270, 252),
            ("590.44.01", 270, 252),
            ("580.70.01", None, 270),  # nobody knows which it has
            ("570.124.06", None, 270),
        ],
    )
    def test_is_asked_for_fields_by_its_own_numbers(
        self, fake_nvml: FakeNvml, version: str, number: int | None, other: int
    ) -> None:
        fake_nvml.driver(version)
        gpu = fake_nvml.gpu(0, "GPU-a")
        gpu.field(other, 77)
        if number:
            gpu.field(number, 1_500_000_000)
        fake_nvml.write()
        name = "nvidia.gpu.clock.reason.time"
        with Site(name) as site:
            site.step()
            shown = site.value(name, "GPU-a", (("nvidia.gpu.clock.reason", "hw_thermal"),))
        assert shown == (1.5 if number else None)


class TestAHang:
    def test_is_named_and_the_other_gpus_go_on(self, fake_nvml: FakeNvml) -> None:
        three(fake_nvml)
        with Site(POWER) as site:
            site.step()
            assert watts(site) == [100.0, 101.0, 102.0]
            fake_nvml.gpus[1].hangs(FIELDS)
            fake_nvml.gpus[2].field(186, 333_000, "uint")
            fake_nvml.write()
            pid = site.pid
            snapshot = site.step()
            assert snapshot.hung == ((FIELDS, "GPU-b"),)
            assert "did not return" in snapshot.trouble
            snapshot = site.step(after_s=1)
            assert site.pid != pid
            assert watts(site) == [100.0, None, 333.0]
            assert snapshot.hung == ((FIELDS, "GPU-b"),)
            assert not snapshot.trouble
            assert dict(snapshot.up) == {"GPU-a": True, "GPU-b": False, "GPU-c": True}
            assert site.door.abandoned == ()  # SIGTERM does not end a call into C, SIGKILL does

            fake_nvml.gpus[1].recovers(FIELDS)
            fake_nvml.write()
            snapshot = site.step(after_s=suspects.FIRST_S)
            assert watts(site) == [100.0, 101.0, 333.0]
            assert snapshot.hung == ()

    def test_while_a_gpu_is_opened_leaves_that_gpu_out(self, fake_nvml: FakeNvml) -> None:
        three(fake_nvml)
        fake_nvml.gpus[1].hangs("nvmlDeviceGetHandleByIndex_v2")
        fake_nvml.write()
        with Site(POWER, open_deadline_s=1.0) as site:
            snapshot = site.step()
            assert snapshot.hung == (("nvmlDeviceGetHandleByIndex", "1"),)
            site.step(after_s=1)
            assert watts(site) == [100.0, None, 102.0]

    def test_is_not_what_many_slow_gpus_do(self, fake_nvml: FakeNvml) -> None:
        three(fake_nvml)
        for gpu in fake_nvml.gpus.values():
            gpu.slow("nvmlDeviceGetHandleByIndex_v2", 250)
            gpu.slow("nvmlDeviceGetTotalEnergyConsumption", int(600 * DEADLINE_S))
        fake_nvml.write()
        with Site(ENERGY, open_deadline_s=0.6) as site:
            snapshot = site.step()
            assert [site.value(ENERGY, uuid) for uuid in UUIDS] == [5000.0, 5000.001, 5000.002]
            assert (snapshot.hung, snapshot.trouble) == ((), "")


class TestALostGpu:
    def test_ends_its_series_and_no_others_until_it_is_back(self, fake_nvml: FakeNvml) -> None:
        three(fake_nvml)
        with Site(POWER, ENERGY, TEMPERATURE) as site:
            site.step()
            fake_nvml.gpus[1].loses()
            fake_nvml.write()
            snapshot = site.step()
            assert watts(site) == [100.0, None, 102.0]
            assert not any(reading.device == "GPU-b" for reading in snapshot.readings)
            for name in (POWER, ENERGY, TEMPERATURE):
                assert [gap.reason for gap in site.missing(name, "GPU-b")] == [Reason.LOST]
            assert snapshot.up["GPU-b"] is False
            assert snapshot.devices["GPU-b"].model == "NVIDIA H200"

            fake_nvml.gpus[1].recovers(EVERYTHING)
            fake_nvml.write()
            site.step()
            assert watts(site) == [100.0, 101.0, 102.0]

    def test_may_be_lost_in_the_middle_of_a_sweep(self, fake_nvml: FakeNvml) -> None:
        three(fake_nvml)
        with Site(ENERGY, TEMPERATURE) as site:
            site.step()
            fake_nvml.gpus[1].fails(EVERYTHING, Code.GPU_IS_LOST, after=1)
            fake_nvml.write()
            site.step()  # one answer came through, and is true
            shown = {name: site.value(name, "GPU-b") for name in (ENERGY, TEMPERATURE)}
            assert None in shown.values()
            snapshot = site.step()
            assert not any(reading.device == "GPU-b" for reading in snapshot.readings)

    def test_that_cannot_be_opened_is_told_apart_from_the_others(self, fake_nvml: FakeNvml) -> None:
        three(fake_nvml)
        fake_nvml.gpus[0].fails("nvmlDeviceGetHandleByIndex_v2", Code.NO_PERMISSION)
        fake_nvml.gpus[1].loses(999)
        fake_nvml.write()
        with Site(POWER) as site:
            snapshot = site.step()
            assert watts(site) == [None, None, 102.0]
            assert snapshot.system.refused == (Refused(0, 4), Refused(1, 999))

    def test_is_more_than_one_call_that_fails(self, fake_nvml: FakeNvml) -> None:
        three(fake_nvml)
        fake_nvml.gpus[1].fails("nvmlDeviceGetTotalEnergyConsumption", Code.UNKNOWN)
        fake_nvml.write()
        with Site(POWER, ENERGY) as site:
            snapshot = site.step()
            assert watts(site) == [100.0, 101.0, 102.0]
            assert site.value(ENERGY, "GPU-b") is None
            assert snapshot.up["GPU-b"]


class TestADriverThatDoesNotStart:
    def test_of_another_version_gets_a_new_process_and_opens_in_it(
        self, fake_nvml: FakeNvml
    ) -> None:
        three(fake_nvml)
        fake_nvml.system.fails("nvmlInitWithFlags", Code.LIB_RM_VERSION_MISMATCH)
        fake_nvml.write()
        with Site(POWER) as site:
            snapshot = site.step()
            assert "code 18; library" in snapshot.trouble
            assert "reload the kernel module" in snapshot.trouble
            fake_nvml.system.recovers("nvmlInitWithFlags")
            fake_nvml.write()
            site.step(after_s=1)
            assert watts(site) == [100.0, 101.0, 102.0]
            assert site.door.restarts["mismatch"] == 1

    def test_because_it_is_not_loaded_is_waited_for_in_the_same_process(
        self, fake_nvml: FakeNvml
    ) -> None:
        with Site(POWER) as site:
            assert "code 9" in site.step().trouble
            pid = site.pid
            three(fake_nvml)
            site.step(after_s=1)
            assert watts(site) == [100.0, 101.0, 102.0]
            assert site.pid == pid

    def test_a_second_time_leaves_no_handle_of_the_first(self, fake_nvml: FakeNvml) -> None:
        three(fake_nvml)
        with Site(POWER) as site:
            for expected in ([100.0, 101.0, 102.0], [100.0, 500.0, 102.0]):
                site.step()
                assert watts(site) == expected
                fake_nvml.gpus[1].field(186, 500_000, "uint")
                fake_nvml.write()
                site.door.reopen()  # shuts down and starts anew: old handles are no good then


class TestInstances:
    PROFILE = "NVIDIA H200 MIG 1g.18gb"

    def divide(self, fake: FakeNvml, slots: dict[int, str]) -> None:
        fake.gpus[0].partitioned(slots, self.PROFILE)
        for slot, instance in fake.gpus[0].instances.items():
            sizes = {"total": 18 * 2**30, "used": 1000 + slot}
            instance.says("nvmlDeviceGetMemoryInfo_v2", sizes)

    def test_are_found_behind_empty_slots_each_with_its_own_memory(
        self, fake_nvml: FakeNvml
    ) -> None:
        three(fake_nvml)
        self.divide(fake_nvml, {1: "MIG-a", 4: "MIG-b"})
        fake_nvml.write()
        with Site(MEMORY, POWER) as site:
            snapshot = site.step()
            assert [site.value(MEMORY, uuid) for uuid in ("MIG-a", "MIG-b")] == [1001, 1004]
            assert watts(site) == [100.0, 101.0, 102.0]
            first = snapshot.devices["MIG-a"]
            assert (first.parent, first.mig_profile) == ("GPU-a", "1g.18gb")
            assert (first.gpu_instance, first.compute_instance) == (8, 0)

    def test_that_are_divided_anew_are_followed_when_the_driver_tells(
        self, fake_nvml: FakeNvml
    ) -> None:
        three(fake_nvml)
        self.divide(fake_nvml, {1: "MIG-a", 4: "MIG-b"})
        fake_nvml.write()
        with Site(MEMORY) as site:
            site.step()
            self.divide(fake_nvml, {1: "MIG-c", 2: "MIG-d"})
            fake_nvml.happens(0, MIG_CHANGED)
            fake_nvml.write()
            site.step()
            # The handle of slot 1 was of another instance: its number is nobody's.
            assert site.value(MEMORY, "MIG-a") is None
            snapshot = site.step()
            found = {uuid: site.value(MEMORY, uuid) for uuid in snapshot.devices}
            assert found == {
                "GPU-a": None,
                "GPU-b": None,
                "GPU-c": None,
                "MIG-c": 1001,
                "MIG-d": 1002,
            }


class TestTexts:
    def test_that_are_not_utf_8_harm_nothing(self, fake_nvml: FakeNvml) -> None:
        gpu = fake_nvml.gpu(0, "GPU-a", name=b"NVIDIA \xff\xfe H200")
        gpu.says("nvmlDeviceGetSerial", b"\x80\x81")
        gpu.says("nvmlDeviceGetPciInfo_v3", {"busId": b"\xff0000:3B:00.0"})
        gpu.says("nvmlDeviceGetGspFirmwareVersion", b"\xc3(")
        gpu.field(186, 100_000, "uint")
        fake_nvml.write()
        with Site(POWER) as site:
            snapshot = site.step()
            assert site.value(POWER, "GPU-a") == 100.0
            device = snapshot.devices["GPU-a"]
            assert (device.model, device.serial, device.pci_address) == ("", "", "")
            assert device.firmware_version == "\N{REPLACEMENT CHARACTER}("


class TestCounters:
    def test_that_goes_back_begins_anew_from_then_on(self, fake_nvml: FakeNvml) -> None:
        gpu = fake_nvml.gpu(0, "GPU-a")
        with Site(ENERGY) as site:
            starts = []
            for millijoules in (9_000_000, 9_000_500, 500):
                gpu.says("nvmlDeviceGetTotalEnergyConsumption", millijoules)
                fake_nvml.write()
                begin_ns = time.time_ns()
                site.step()
                point = site.point(ENERGY, "GPU-a")
                assert point
                assert point.value == millijoules / 1000
                starts.append(point.start_ns)
            assert starts[:2] == [None, None]
            assert begin_ns <= (starts[2] or 0) <= time.time_ns()

    def test_of_32_bits_that_wraps_goes_on(self, fake_nvml: FakeNvml) -> None:
        gpu = fake_nvml.gpu(0, "GPU-a")
        with Site(REPLAYS) as site:
            shown = []
            for count in (2**32 - 6, 2**32 - 2, 5):
                gpu.says("nvmlDeviceGetPcieReplayCounter", count)
                fake_nvml.write()
                site.step()
                shown.append(site.value(REPLAYS, "GPU-a"))
            assert shown == [2**32 - 6, 2**32 - 2, 2**32 + 5]


class TestEvents:
    def test_an_xid_arrives_with_the_next_sweep(self, fake_nvml: FakeNvml) -> None:
        three(fake_nvml)
        with Site(POWER) as site:
            site.step()
            fake_nvml.happens(1, XID, eventData=31)
            fake_nvml.write()
            site.step()
            (event,) = site.sampler.told()
            assert (event.uuid, event.kind, event.data) == ("GPU-b", "xid", 31)
            assert event.gpu_instance == 0xFFFFFFFF
            site.step()
            assert site.sampler.told() == []


def test_a_machine_that_makes_no_sense_is_told_in_the_words_of_the_fake(
    fake_nvml: FakeNvml,
) -> None:
    three(fake_nvml)
    fake_nvml.gpus[1].says("nvmlDeviceGetMinorNumber", "three")
    fake_nvml.write()
    with Site(POWER) as site:
        assert "'three' is no number from 0 to 4294967295" in site.step().trouble


def test_the_command_line_reads_it_like_any_driver(fake_nvml: FakeNvml) -> None:
    three(fake_nvml)
    ran = otel_gpu("once", "--format", "json", "--backend", "nvml", env=fake_nvml.environ)
    assert ran.returncode == 0, ran.stderr
    text = json.dumps(json.loads(ran.stdout))
    assert all(uuid in text for uuid in UUIDS)
    assert "580.159.04" in text
    assert "101.0" in text
