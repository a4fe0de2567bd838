"""The C library itself: what it exports, how it begins and ends, and what it makes of its file."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fake_nvml.library import SONAME, SYMBOLS, Build, linked
from tests.fake_nvml.machine import FakeNvml
from tests.fake_nvml.raw import told


def test_it_compiles_without_a_warning(objects: tuple[Path, ...]) -> None:
    assert (objects[0].parent / "warnings").read_text() == ""


def test_a_function_that_nvml_never_had_cannot_be_left_out(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nvmlMakeCoffee"):
        linked((), tmp_path / "lib", {"nvmlMakeCoffee"})


def test_every_function_is_there_and_uninitialized_until_the_first_start(
    fake_nvml: FakeNvml,
) -> None:
    fake_nvml.write()
    result = told(
        fake_nvml,
        f"""
        names = {SYMBOLS!r}
        starts = ("nvmlInit", "nvmlInit_v2", "nvmlInitWithFlags", "nvmlErrorString")
        room = (ctypes.c_char * 4096)()
        def call(name):
            return getattr(library, name)(None, *[byref(room)] * 5)
        codes = {{name: call(name) for name in names if name not in starts}}
        result = {{name: code for name, code in codes.items() if code != 1}}
        """,
    )
    assert len(SYMBOLS) == 436
    assert result == {"nvmlGpmSampleFree": 0}  # memory is given back at any time


def test_a_function_without_a_word_in_the_file_is_not_supported(fake_nvml: FakeNvml) -> None:
    fake_nvml.gpu(0, "GPU-a")
    fake_nvml.write()
    result = told(
        fake_nvml,
        """
        nvml.nvmlInit()
        gpu = nvml.nvmlDeviceGetHandleByIndex(0)
        room = (ctypes.c_char * 4096)()
        names = "GetBridgeChipInfo", "GetPowerUsage", "SetFanSpeed_v2"
        functions = [getattr(library, "nvmlDevice" + name) for name in names]
        result = [function(gpu, byref(room), byref(room)) for function in functions]
        result.append(library.nvmlSystemGetHicVersion(byref(room), byref(room)))
        """,
    )
    assert result == [3, 3, 3, 3]


def test_it_is_shut_down_as_often_as_it_was_started(fake_nvml: FakeNvml) -> None:
    fake_nvml.gpu(0, "GPU-a").says("nvmlDeviceGetPowerUsage", 5)
    fake_nvml.write()
    result = told(
        fake_nvml,
        """
        def power(): return code(nvml.nvmlDeviceGetPowerUsage, gpu)
        result = [code(nvml.nvmlShutdown) if nvml.nvmlLib else 1]
        nvml.nvmlInit()
        nvml.nvmlInitWithFlags(1)
        gpu = nvml.nvmlDeviceGetHandleByIndex(0)
        same = nvml.nvmlDeviceGetHandleByIndex(0)
        assert ctypes.addressof(gpu.contents) == ctypes.addressof(same.contents)
        nvml.nvmlShutdown()
        result.append(power())
        nvml.nvmlShutdown()
        result.append(power())
        result.append(code(nvml.nvmlShutdown))
        nvml.nvmlInit()
        result.append(power())  # with a handle of the life before
        gpu = nvml.nvmlDeviceGetHandleByIndex(0)
        result.append(power())
        stray = ctypes.cast(ctypes.c_void_p(0xdead), type(gpu))
        result.append(code(nvml.nvmlDeviceGetPowerUsage, stray))
        """,
    )
    assert result == [1, 0, 1, 1, 2, 0, 2]


def test_a_driver_without_gpus_starts_only_when_that_is_allowed(fake_nvml: FakeNvml) -> None:
    fake_nvml.write()
    result = told(
        fake_nvml,
        """
        result = [code(nvml.nvmlInit), code(nvml.nvmlInitWithFlags, 1), nvml.nvmlDeviceGetCount()]
        result.append(code(nvml.nvmlDeviceGetHandleByIndex, 0))
        """,
    )
    assert result == [28, 0, 0, 2]


def test_gpus_are_found_by_all_that_names_them(fake_nvml: FakeNvml) -> None:
    for index, uuid in enumerate(("GPU-a", "GPU-b")):
        fake_nvml.gpu(index, uuid).says("nvmlDeviceGetSerial", f"000{index}")
    fake_nvml.write()
    result = told(
        fake_nvml,
        """
        nvml.nvmlInit()
        def who(function, name): return nvml.nvmlDeviceGetUUID(function(name))
        result = [
            who(nvml.nvmlDeviceGetHandleByUUID, b"GPU-b"),
            who(nvml.nvmlDeviceGetHandleBySerial, b"0001"),
            who(nvml.nvmlDeviceGetHandleByPciBusId, b"00000000:3C:00.0"),
            nvml.nvmlDeviceGetIndex(nvml.nvmlDeviceGetHandleByUUID(b"GPU-b")),
            code(nvml.nvmlDeviceGetHandleByUUID, b"GPU-c"),
            code(nvml.nvmlDeviceGetHandleByPciBusId, b"00000000:77:00.0"),
        ]
        """,
    )
    assert result == ["GPU-b", "GPU-b", "GPU-b", 1, 6, 6]


def test_a_list_that_is_too_long_says_how_long_it_is(fake_nvml: FakeNvml) -> None:
    gpu = fake_nvml.gpu(0, "GPU-a")
    gpu.says("nvmlDeviceGetComputeRunningProcesses_v3", [{"pid": 7 + n} for n in range(3)])
    gpu.says("nvmlDeviceGetGraphicsRunningProcesses_v3", [])
    gpu.says("nvmlDeviceGetEncoderSessions", [{"sessionId": 1, "pid": 7}])
    gpu.ring(0, [(10, 1), (20, 2), (30, 3)])
    fake_nvml.write()
    result = told(
        fake_nvml,
        """
        nvml.nvmlInit()
        gpu, count, kind = nvml.nvmlDeviceGetHandleByIndex(0), ctypes.c_uint(), ctypes.c_uint()
        room = (ctypes.c_char * 4096)()
        def ask(name, most, *arguments):
            count.value = most
            return [getattr(library, name)(gpu, *arguments), count.value]
        size = (byref(count), None)
        some = (byref(count), byref(room))
        since = ctypes.c_ulonglong
        result = [
            ask("nvmlDeviceGetComputeRunningProcesses_v3", 0, *size),
            ask("nvmlDeviceGetComputeRunningProcesses_v3", 2, *some),
            ask("nvmlDeviceGetComputeRunningProcesses_v3", 9, *some),
            ask("nvmlDeviceGetGraphicsRunningProcesses_v3", 0, *size),
            ask("nvmlDeviceGetEncoderSessions", 0, *size),
            ask("nvmlDeviceGetSamples", 0, 0, since(10), byref(kind), byref(count), None),
            ask("nvmlDeviceGetSamples", 1, 0, since(10), byref(kind), byref(count), byref(room)),
            ask("nvmlDeviceGetSamples", 9, 0, since(30), byref(kind), byref(count), byref(room)),
        ]
        """,
    )
    assert result == [[7, 3], [7, 3], [0, 3], [0, 0], [0, 1], [0, 4], [0, 1], [6, 9]]


def test_a_struct_of_another_version_is_refused(fake_nvml: FakeNvml) -> None:
    gpu = fake_nvml.gpu(0, "GPU-a")
    gpu.says("nvmlDeviceGetMemoryInfo_v2", {"total": 9})
    gpu.says("nvmlDeviceGetGpuFabricInfoV", {"state": 3})
    gpu.fails("nvmlDeviceGetGpuFabricInfoV(3)", 25)
    fake_nvml.write()
    result = told(
        fake_nvml,
        """
        nvml.nvmlInit()
        gpu, room = nvml.nvmlDeviceGetHandleByIndex(0), (ctypes.c_uint * 64)()
        def ask(name, version):
            room[0] = version
            return getattr(library, name)(gpu, byref(room))
        result = [
            ask("nvmlDeviceGetMemoryInfo_v2", 2),
            ask("nvmlDeviceGetMemoryInfo_v2", 0x02000028),
            ask("nvmlDeviceGetGpuFabricInfoV", 0x03000028),
            ask("nvmlDeviceGetGpuFabricInfoV", 0x02000024),
            ask("nvmlDeviceGetGpuFabricInfoV", 0x04000224),
        ]
        """,
    )
    assert result == [13, 0, 25, 0, 25]


def test_what_is_slow_is_slow_and_comes_all_the_same(fake_nvml: FakeNvml) -> None:
    gpu = fake_nvml.gpu(0, "GPU-a")
    gpu.says("nvmlDeviceGetPowerUsage", 5)
    gpu.slow("nvmlDeviceGetPowerUsage", 120)
    fake_nvml.write()
    value, seconds = told(
        fake_nvml,
        """
        nvml.nvmlInit()
        gpu = nvml.nvmlDeviceGetHandleByIndex(0)
        begin = time.monotonic()
        result = [nvml.nvmlDeviceGetPowerUsage(gpu), time.monotonic() - begin]
        """,
    )
    assert value == 5
    assert seconds >= 0.12


def test_it_is_found_by_its_soname_under_any_file_name(build: Build, tmp_path: Path) -> None:
    copy = tmp_path / "driver"
    shutil.copy(build(()) / SONAME, copy)
    program = f"import ctypes; ctypes.CDLL({str(copy)!r}); ctypes.CDLL({SONAME!r})"
    subprocess.run([sys.executable, "-c", program], check=True)


MISTAKES = {
    "fan 0 nvmlDeviceGetName 1": "it begins with neither 'gpu' nor 'system'",
    "gpu x nvmlDeviceGetName 1": "'x' is no whole number",
    "gpu 64 nvmlDeviceGetName 1": "64 is not under 64",
    "gpu 0.8 nvmlDeviceGetName 1": "8 is not under 8",
    "gpu 0 nvmlDeviceGetPowerUsage": "it does not say what happens",
    "gpu 0 *": "it does not say what happens",
    "gpu 0 * 5": "it does not say what happens",
    "gpu 0 nvmlDeviceGetClockInfo(1 5": "a parenthesis is not closed",
    "gpu 0 nvmlDeviceGetClockInfo(1,2,3,4,5) 5": "too many arguments",
    "gpu 0 nvmlDeviceGetPowerUsage error x": "'x' is no whole number",
    "gpu 0 nvmlDeviceGetPowerUsage error 3 4": "'4' is too much",
    "gpu 0 nvmlDeviceGetPowerUsage none 4": "'4' is too much",
    'gpu 0 nvmlDeviceGetName "x': "a quote is not closed",
    'gpu 0 nvmlDeviceGetName "\\xg1"': "not followed by two hexadecimal digits",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_line_that_makes_no_sense_ends_the_process_with_a_word(
    build: Build, tmp_path: Path, line: str
) -> None:
    assert MISTAKES[line] in last_words(build, tmp_path, f"# a comment\n\n{line}\n")


ANSWERS = {
    "gpu 0 nvmlDeviceGetPowerUsage 5 6": "nvmlDeviceGetPowerUsage gives 1 values",
    "gpu 0 nvmlDeviceGetPowerUsage none": "nvmlDeviceGetPowerUsage gives no list",
    "gpu 0 nvmlDeviceGetPowerUsage -5": "'-5' is no number from 0 to 4294967295",
    "gpu 0 nvmlDeviceGetPowerUsage 4294967296": "'4294967296' is no number from 0 to 4294967295",
    'gpu 0 nvmlDeviceGetPowerUsage "much"': "'much' is no number",
}


@pytest.mark.parametrize("line", ANSWERS)
def test_an_answer_that_its_function_cannot_give_ends_the_process_with_a_word(
    build: Build, tmp_path: Path, line: str
) -> None:
    file = f'gpu 0 nvmlDeviceGetUUID "GPU-a"\n{line}\n'
    assert ANSWERS[line] in last_words(build, tmp_path, file)


ASK_POWER = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.nvmlInit_v2()
gpu = ctypes.c_void_p()
library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(gpu))
library.nvmlDeviceGetPowerUsage(gpu, ctypes.byref(ctypes.c_uint()))
"""


def last_words(build: Build, folder: Path, text: str) -> str:
    """Give what is written to stderr about a file's last line."""
    path = folder / "machine"
    path.write_text(text)
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", ASK_POWER, str(build(()) / SONAME)],
        env={"FAKE_NVML": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 70
    number = len(text.splitlines())
    assert ran.stderr.startswith(f"fake NVML: {path}, line {number}: ")
    return ran.stderr
