from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from otel_gpu.backends.nvml import MISMATCH, NvmlBackend, attempt, nvml
from otel_gpu.backends.processes import host_pids
from otel_gpu.backends.remedies import REMEDIES
from otel_gpu.model import Answer, BackendError, Code, Query, Refused
from tests.backends.library import Gpu, Library, fills, gives, loaded, refuses, says, since_r570

POWER = Query("nvmlDeviceGetPowerUsage")
MEMORY = Query("nvmlDeviceGetMemoryInfo_v2")
SW_THERM, SW_THERM_OF_R575 = 269, 251


def field(number: int, scope: int = 0) -> Query:
    return Query("nvmlDeviceGetFieldValues", (number, scope))


def fields(**values: int) -> Callable[..., int]:
    """Answer fields as a driver does: `f186=...` by id; others are not supported."""

    def function(_count: Any, entries: Any) -> int:
        for entry in entries._obj:
            known = values.get(f"f{entry.fieldId}")
            entry.valueType, entry.nvmlReturn = 3, 3 if known is None else 0
            entry.value.ullVal = (known or 0) + entry.scopeId
        return 0

    return function


def a_gpu(uuid: str = "GPU-a", **functions: Callable[..., int]) -> Gpu:
    return Gpu(uuid, {f"nvmlDeviceGet{name}": function for name, function in functions.items()})


def ask(gpu: Gpu, *queries: Query, driver_version: str = "580.159.04") -> list[Answer]:
    with loaded(Library(gpu, driver_version=driver_version)):
        backend = NvmlBackend()
        backend.open()
        return backend.ask(gpu.uuid, queries)


class TestOpening:
    def test_says_what_the_driver_says_of_itself_and_of_each_gpu(self) -> None:
        gpu = a_gpu(
            Name=says("NVIDIA H200"),
            MinorNumber=gives(3),
            PciInfo_v3=fills(busId="00000000:3B:00.0"),
            CudaComputeCapability=gives(9, 0),
            Architecture=gives(9),
            GspFirmwareVersion=says("580.159.04"),
        )
        with loaded(Library(gpu)):
            system = NvmlBackend().open()
        assert (system.driver_version, system.cuda_version) == ("580.159.04", "13.0")
        assert system.nvml_version == ""  # this library does not say
        (device,) = system.devices
        assert (device.uuid, device.model, device.name) == ("GPU-a", "NVIDIA H200", "nvidia3")
        assert (device.pci_address, device.compute_capability) == ("0000:3b:00.0", "9.0")
        assert (device.architecture, device.firmware_version) == ("Hopper", "580.159.04")
        assert (device.serial, device.part_number, device.bios_version) == ("", "", "")

    @since_r570
    def test_counts_what_each_gpu_is_equipped_with(self) -> None:
        equipped = a_gpu(
            FieldValues=fields(f91=18, f166=7),
            GpuInstanceProfileInfoV=fills(decoderCount=7, encoderCount=2, jpegCount=5, ofaCount=1),
            C2cModeInfoV=fills(isC2cEnabled=1),
        )
        with loaded(Library(equipped, a_gpu("GPU-b", FieldValues=fields(f166=7)))):
            first, second = NvmlBackend().open().devices
        assert (first.decoders, first.encoders, first.jpegs, first.ofas) == (7, 2, 5, 1)
        assert (first.nvlinks, first.nvlink_version, first.c2c) == (18, 7, True)
        assert (second.decoders, second.encoders, second.jpegs, second.ofas) == (0, 0, 0, 0)
        assert (second.nvlinks, second.nvlink_version, second.c2c) == (0, 0, False)

    def test_works_on_a_machine_that_has_a_driver_and_no_gpu(self) -> None:
        with loaded(Library()) as library:
            assert NvmlBackend().open().devices == ()
        assert library.running == 1

    def test_goes_on_past_a_gpu_that_does_not_open(self) -> None:
        lost, mute = Gpu("GPU-b", opens=15), Gpu("GPU-c", {"nvmlDeviceGetUUID": refuses(999)})
        with loaded(Library(Gpu("GPU-a"), lost, mute, Gpu("GPU-d"))):
            system = NvmlBackend().open()
        assert [(device.uuid, device.index) for device in system.devices] == [
            ("GPU-a", 0),
            ("GPU-d", 3),
        ]
        assert system.refused == (Refused(1, 15), Refused(2, 999))

    def test_finds_the_instances_behind_an_empty_slot(self) -> None:
        instance = Gpu(
            "MIG-a",
            {
                "nvmlDeviceGetName": says("NVIDIA H200 MIG 1g.18gb"),
                "nvmlDeviceGetGpuInstanceId": gives(9),
                "nvmlDeviceGetComputeInstanceId": gives(0),
            },
        )
        with loaded(Library(Gpu("GPU-a", slots=[None, instance, None, Gpu("MIG-b")]))):
            system = NvmlBackend().open()
        assert [device.uuid for device in system.devices] == ["GPU-a", "MIG-a", "MIG-b"]
        first = system.devices[1]
        assert (first.parent, first.mig_profile, first.gpu_instance) == ("GPU-a", "1g.18gb", 9)

    def test_leaves_out_a_gpu_with_its_instances_and_without_touching_it_by_its_index(self) -> None:
        machine = Library(Gpu("GPU-a", slots=[Gpu("MIG-a")]), Gpu("GPU-b"))
        with loaded(machine):
            backend = NvmlBackend()
            for exclude in ({"GPU-a"}, {"0"}):
                system = backend.open(frozenset(exclude))
                assert [device.uuid for device in system.devices] == ["GPU-b"]
            assert machine.calls.count("nvmlDeviceGetHandleByIndex_v2") == 2 + 1
            some = backend.open(frozenset({"MIG-a"}))
            assert [device.uuid for device in some.devices] == ["GPU-a", "GPU-b"]

    def test_again_begins_with_new_handles_and_ends_what_it_began(self) -> None:
        gpu = Gpu("GPU-a", {"nvmlDeviceGetPowerUsage": gives(5)}, slots=[Gpu("MIG-a")])
        with loaded(Library(gpu)) as library:
            backend = NvmlBackend()
            backend.open()
            gpu.slots = [None]
            backend.open()
            assert library.running == 1
            assert backend.ask("MIG-a", [POWER]) == [Answer(Code.GPU_NOT_FOUND)]
            backend.close()
            backend.close()
            assert library.running == 0
            assert backend.ask("GPU-a", [POWER]) == [Answer(Code.UNINITIALIZED)]

    def test_announces_each_call_under_the_best_name_that_is_known(self) -> None:
        calls: list[tuple[str, str]] = []
        with loaded(Library(Gpu("GPU-a", slots=[Gpu("MIG-a")]))):
            backend = NvmlBackend()
            backend.on_call = lambda uuid, call: calls.append((uuid, call))
            backend.open()
            backend.ask("GPU-a", [field(186), POWER])
            backend.close()
        assert calls[0] == ("", "nvmlInitWithFlags")
        assert ("0", "nvmlDeviceGetHandleByIndex") in calls
        assert ("GPU-a", "nvmlDeviceGetMigDeviceHandleByIndex") in calls
        assert ("MIG-a", "nvmlDeviceGetGpuInstanceId") in calls
        assert calls[-3:] == [
            ("GPU-a", "nvmlDeviceGetFieldValues"),
            ("GPU-a", "nvmlDeviceGetPowerUsage"),
            ("", "nvmlShutdown"),
        ]

    @pytest.mark.parametrize("code", sorted(REMEDIES))
    def test_says_what_to_do_when_the_driver_does_not_start(self, code: int) -> None:
        with (
            loaded(Library(init=code)),
            pytest.raises(BackendError, match="not start") as error,
        ):
            NvmlBackend().open()
        assert error.value.code == code
        assert f"(code {code}" in error.value.text
        assert error.value.remedy == REMEDIES[code]
        assert ".." not in str(error.value)

    def test_says_so_when_the_gpus_cannot_be_counted(self) -> None:
        with (
            loaded(Library(count=refuses(999))),
            pytest.raises(BackendError, match="count") as error,
        ):
            NvmlBackend().open()
        assert error.value.code == Code.UNKNOWN
        assert "daemon-reload" in error.value.remedy

    def test_says_how_it_differs_when_library_and_module_do(self) -> None:
        with loaded(Library(init=18)), pytest.raises(BackendError, match=r"library .* module "):
            NvmlBackend().open()

    def test_without_a_driver_says_which_file_did_not_load(self) -> None:
        with suppress(OSError):
            ctypes.CDLL("libnvidia-ml.so.1")
            pytest.skip("this machine has a driver, so a missing one cannot be shown")
        with pytest.raises(BackendError, match=r"libnvidia-ml\.so\.1.*cannot open") as error:
            NvmlBackend().open()
        assert error.value.code == Code.LIBRARY_NOT_FOUND
        assert "NVIDIA_DRIVER_CAPABILITIES=utility" in error.value.remedy


class TestAsking:
    @since_r570
    def test_gives_numbers_structs_and_lists_as_plain_values(self) -> None:
        gpu = a_gpu(
            PowerUsage=gives(689380),
            UtilizationRates=fills(gpu=89, memory=20),
            EncoderUtilization=gives(7, 100000),
            TemperatureV=fills(temperature=-3),
        )
        assert ask(
            gpu,
            POWER,
            Query("nvmlDeviceGetUtilizationRates"),
            Query("nvmlDeviceGetEncoderUtilization"),
            Query("nvmlDeviceGetTemperatureV", (0,)),
        ) == [
            Answer(0, 689380),
            Answer(0, {"gpu": 89, "memory": 20}),
            Answer(0, [7, 100000]),
            Answer(0, -3),
        ]

    def test_passes_a_refusal_on_and_goes_on(self) -> None:
        gpu = a_gpu(PowerUsage=refuses(15), FanSpeed=refuses(3), PerformanceState=gives(0))
        queries = [POWER, Query("nvmlDeviceGetFanSpeed"), Query("nvmlDeviceGetPerformanceState")]
        assert ask(gpu, *queries) == [Answer(15), Answer(3), Answer(0, 0)]

    def test_tells_what_is_missing_in_the_library_and_in_pynvml(self) -> None:
        missing = Answer(Code.FUNCTION_NOT_FOUND)
        assert ask(
            a_gpu(),
            POWER,
            Query("nvmlDeviceGetComputeRunningProcesses"),
            Query("nvmlDeviceGetNothing"),
        ) == [missing, missing, missing]

    def test_knows_the_second_form_of_memory(self) -> None:
        gpu = a_gpu(MemoryInfo_v2=fills(total=100, reserved=10, free=50, used=40))
        assert ask(gpu, MEMORY)[0].value == {
            "version": nvml.nvmlMemory_v2,
            "total": 100,
            "reserved": 10,
            "free": 50,
            "used": 40,
        }

    def test_reads_samples_by_their_type_and_nothing_new_as_not_found(self) -> None:
        def two(kind: Any, since: Any, value_type: Any, count: Any, entries: Any) -> int:
            assert (kind.value, since.value) == (0, 77)
            value_type._obj.value, count._obj.value = 1, 2
            for number in range(2 if entries else 0):
                entries[number].timeStamp = 100 + number
                entries[number].sampleValue.uiVal = 700 + number
            return 0

        query = Query("nvmlDeviceGetSamples", (0, 77))
        assert ask(a_gpu(Samples=two), query) == [Answer(0, [[100, 700], [101, 701]])]
        assert ask(a_gpu(Samples=refuses(6)), query) == [Answer(Code.NOT_FOUND)]

    @since_r570
    def test_takes_the_newest_form_of_a_struct_that_the_driver_takes(self) -> None:
        def second(pointer: Any) -> int:
            if pointer._obj.version != nvml.nvmlGpuFabricInfo_v2:
                return 25
            return fills(state=3, healthMask=2)(pointer)

        query = Query("nvmlDeviceGetGpuFabricInfoV")
        (answer,) = ask(a_gpu(GpuFabricInfoV=second), query)
        assert (answer.value["state"], answer.value["healthMask"]) == (3, 2)
        assert "healthSummary" not in answer.value
        assert ask(a_gpu(GpuFabricInfoV=refuses(25)), query) == [Answer(25)]
        assert ask(a_gpu(GpuFabricInfoV=refuses(3)), query) == [Answer(3)]

    def test_of_processes_that_do_nothing_is_told_as_nothing_found(self) -> None:
        query = Query("nvmlDeviceGetProcessUtilization", (0,))
        assert ask(a_gpu(ProcessUtilization=refuses(0)), query) == [Answer(Code.NOT_FOUND)]

    def test_of_processes_names_them_unless_the_lists_are_empty_here(self) -> None:
        def one(count: Any, entries: Any) -> int:
            count._obj.value = 1
            if entries is None:
                return 7  # insufficient size: there is one
            entries[0].pid, entries[0].usedGpuMemory = os.getpid(), 4096
            return 0

        query = Query("nvmlDeviceGetComputeRunningProcesses")
        (answer,) = ask(a_gpu(ComputeRunningProcesses_v3=one), query)
        if not host_pids():
            assert answer == Answer(Code.PID_NAMESPACE)
            pytest.skip("in a PID namespace of its own, NVML's PIDs are refused: that was shown")
        (process,) = answer.value
        assert (process["pid"], process["usedGpuMemory"]) == (os.getpid(), 4096)
        assert process["name"].startswith("python")

    def test_of_peers_gives_the_status_of_each_other_gpu_that_says_one(self) -> None:
        def status(_peer: Any, capability: Any, pointer: Any) -> int:
            pointer._obj.value = 40 + capability
            return 0

        query = Query("nvmlDeviceGetP2PStatus", (2,))
        told = a_gpu("GPU-a", P2PStatus=status)
        mute = a_gpu("GPU-b", P2PStatus=refuses(999))
        with loaded(Library(told, mute, Gpu("GPU-c", slots=[Gpu("MIG-c")]))):
            backend = NvmlBackend()
            backend.open()
            (answer,) = backend.ask("GPU-a", [query])
            assert answer == Answer(0, {"GPU-b": 42, "GPU-c": 42})
            assert backend.ask("GPU-b", [query]) == [Answer(999)]
        assert ask(told, query) == [Answer(Code.NOT_SUPPORTED)], "alone, it has answered nothing"

    def test_in_a_form_that_this_pynvml_does_not_know_is_an_answer_too(self) -> None:
        wrong = Query("nvmlDeviceGetPowerUsage", (1, 2))
        assert ask(a_gpu(PowerUsage=gives(5)), wrong, POWER) == [
            Answer(Code.INVALID_ARGUMENT),
            Answer(0, 5),
        ]

    @pytest.mark.parametrize(
        "call", ["nvmlDeviceSetPowerManagementLimit", "nvmlInit", "nvmlDeviceResetGpuLockedClocks"]
    )
    def test_never_does_anything_but_read(self, call: str) -> None:
        gpu = Gpu("GPU-a", {call: gives()})
        with loaded(Library(gpu)) as library:
            backend = NvmlBackend()
            backend.open()
            before = len(library.calls)
            assert backend.ask("GPU-a", [Query(call)]) == [Answer(Code.FUNCTION_NOT_FOUND)]
            assert len(library.calls) == before


class TestFields:
    def test_travel_in_one_call_and_come_back_in_their_places(self) -> None:
        gpu = a_gpu(FieldValues=fields(f186=700, f83=5), PowerUsage=gives(1))
        with loaded(Library(gpu)) as library:
            backend = NvmlBackend()
            backend.open()
            library.calls.clear()  # opening asked for fields too
            got = backend.ask("GPU-a", [field(186), POWER, field(99), field(83, 2), field(186)])
        assert got == [Answer(0, 700), Answer(0, 1), Answer(3), Answer(0, 7), Answer(0, 700)]
        assert library.calls.count("nvmlDeviceGetFieldValues") == 1

    def test_are_all_refused_when_the_call_is(self) -> None:
        assert ask(a_gpu(FieldValues=refuses(15)), field(186), field(83)) == [Answer(15)] * 2

    @pytest.mark.parametrize(
        ("driver_version", "answer"),
        [
            ("580.159.04", Answer(0, 269)),
            ("575.51.03", Answer(0, 251)),
            ("580.70.01", Answer(Code.NOT_SUPPORTED)),
            ("570.124.06", Answer(Code.NOT_SUPPORTED)),
        ],
    )
    def test_are_asked_by_the_number_that_this_driver_knows(
        self, driver_version: str, answer: Answer
    ) -> None:
        gpu = a_gpu(FieldValues=fields(f269=SW_THERM, f251=SW_THERM_OF_R575))
        assert ask(gpu, field(SW_THERM), driver_version=driver_version) == [answer]

    def test_that_this_driver_does_not_have_cost_no_call(self) -> None:
        with loaded(Library(a_gpu(FieldValues=fields()), driver_version="570.1")) as library:
            backend = NvmlBackend()
            backend.open()
            library.calls.clear()
            backend.ask("GPU-a", [field(SW_THERM)])
        assert "nvmlDeviceGetFieldValues" not in library.calls


def fail(error: Exception) -> Callable[[], None]:
    def function() -> None:
        raise error

    return function


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (nvml.NVMLError(3), 3),
        (nvml.NVMLError(999), 999),
        (nvml.NVMLError(4711), 4711),
        (nvml.NVMLError(0), Code.NOT_FOUND),
        (MISMATCH(13), Code.FUNCTION_NOT_FOUND),  # in older versions of pynvml, NVMLError itself
        (TypeError("takes 1 argument"), Code.INVALID_ARGUMENT),
        (ctypes.ArgumentError("wrong type"), Code.INVALID_ARGUMENT),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), Code.NO_DATA),
        (IndexError("the driver counts more than it wrote"), Code.NO_DATA),
        (MemoryError(), Code.NO_DATA),
    ],
)
def test_each_way_in_which_pynvml_fails_becomes_a_code(error: Exception, code: int) -> None:
    assert attempt(fail(error)) == Answer(code)
