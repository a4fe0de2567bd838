"""Event sets as pynvml sees them: what is delivered, when, and what a wait costs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.fake_nvml.machine import MIG_CHANGED, XID, FakeNvml
from tests.fake_nvml.raw import told

LISTEN = """
nvml.nvmlInit()
gpus = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
events = nvml.nvmlEventSetCreate()

def wait(timeout_ms=0):
    try:
        said = nvml.nvmlEventSetWait_v2(events, timeout_ms)
    except nvml.NVMLError as error:
        return error.value
    who = nvml.nvmlDeviceGetUUID(said.device)
    return [who, said.eventType, said.eventData, said.gpuInstanceId, said.computeInstanceId]
"""
WHOLE = 0xFFFFFFFF


def test_what_happened_before_the_registration_is_not_told(fake_nvml: FakeNvml) -> None:
    fake_nvml.gpu(0, "GPU-a")
    fake_nvml.happens(0, XID, eventData=31)
    fake_nvml.write()
    result = told(
        fake_nvml,
        LISTEN
        + """
nvml.nvmlDeviceRegisterEvents(gpus[0], 8, events)
begin = time.monotonic()
result = [wait(), time.monotonic() - begin]
begin = time.monotonic()
result += [wait(150), time.monotonic() - begin]
nvml.nvmlEventSetFree(events)
""",
    )
    assert [result[0], result[2]] == [10, 10]
    assert result[1] < 0.1
    assert result[3] >= 0.15  # it really blocked


def test_types_that_are_not_supported_are_left_out(fake_nvml: FakeNvml) -> None:
    gpu = fake_nvml.gpu(0, "GPU-a")
    gpu.says("nvmlDeviceGetSupportedEventTypes", XID)
    gpu.partitioned({0: "MIG-a"})
    fake_nvml.write()
    result = told(
        fake_nvml,
        LISTEN
        + """
part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpus[0], 0)
register = nvml.nvmlDeviceRegisterEvents
result = [code(register, gpus[0], types, events) for types in (0x100, 0x108, 8)]
result.append(code(register, part, 8, events))
""",
    )
    assert result == [3, 0, 0, 3]


WAITING = (
    LISTEN
    + """
for gpu in gpus[:2]:
    nvml.nvmlDeviceRegisterEvents(gpu, 0x108, events)
print("listening", flush=True)
for _ in range(4):
    print(json.dumps(wait(20_000)), flush=True)
"""
)


@contextmanager
def listening(program: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program until it listens."""
    before = "import ctypes, json, time\nfrom otel_gpu.backends.nvml import nvml\n"
    process = subprocess.Popen(
        [sys.executable, "-c", before + program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "listening\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_wait_ends_with_the_next_event_of_a_registered_gpu_or_with_an_error(
    fake_nvml: FakeNvml,
) -> None:
    for index in range(3):
        fake_nvml.gpu(index, f"GPU-{index}")
    fake_nvml.write()
    with listening(WAITING) as process:
        fake_nvml.happens(2, XID, eventData=79)  # nobody registered it
        fake_nvml.happens(0, 0x10)  # nor clocks
        fake_nvml.happens(1, XID, eventData=31)
        fake_nvml.happens(0, XID, eventData=63, gpuInstanceId=5, computeInstanceId=1)
        fake_nvml.write()
        assert process.stdout
        heard = [process.stdout.readline() for _ in range(2)]
        fake_nvml.happens(1, MIG_CHANGED)
        fake_nvml.write()
        heard.append(process.stdout.readline())
        fake_nvml.system.fails("nvmlEventSetWait_v2", 15)  # as when a GPU is lost
        fake_nvml.write()
        heard.append(process.stdout.readline())
    assert heard == [
        f'["GPU-1", {XID}, 31, {WHOLE}, {WHOLE}]\n',
        f'["GPU-0", {XID}, 63, 5, 1]\n',
        f'["GPU-1", {MIG_CHANGED}, 0, {WHOLE}, {WHOLE}]\n',
        "15\n",
    ]


SYSTEM = """
nvml.nvmlInit()
events = nvml.nvmlSystemEventSetCreate(nvml.nvmlSystemEventSetCreateRequest_v1)
nvml.nvmlSystemRegisterEvents(nvml.nvmlSystemRegisterEventRequest_v1, 3, events)
room = (nvml.c_nvmlSystemEventData_v1_t * 4)()
def wait(timeout_ms):
    version = nvml.nvmlSystemEventSetWaitRequest_v1
    return nvml.nvmlSystemEventSetWait(version, events, timeout_ms, room, 4)
print("listening", flush=True)
for timeout_ms in (20_000, 0):
    print(json.dumps(wait(timeout_ms)), flush=True)
nvml.nvmlSystemEventSetFree(nvml.nvmlSystemEventSetFreeRequest_v1, events)
print("done", flush=True)
"""


def test_the_system_tells_that_a_driver_is_to_let_go_of_a_gpu(fake_nvml: FakeNvml) -> None:
    nvml = pytest.importorskip("otel_gpu.backends.nvml").nvml
    if not hasattr(nvml, "nvmlSystemEventSetCreate"):
        pytest.skip("this pynvml is older")
    fake_nvml.gpu(0, "GPU-a")
    fake_nvml.write()
    with listening(SYSTEM) as process:
        fake_nvml.happens_to_driver(1, gpu_id=0x3B00)
        fake_nvml.write()
        assert process.stdout
        heard = [process.stdout.readline() for _ in range(3)]
    assert heard == [f'[{{"eventType": 1, "gpuId": {0x3B00}}}]\n', "[]\n", "done\n"]
