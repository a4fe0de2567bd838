"""`otel-gpu check`: a verdict on the node in one line."""

import time
from typing import Any

import pytest

from otel_gpu.catalog.errors import BANKS, SRAM
from otel_gpu.catalog.health import RECOVERY, REMAP_FAILED, REMAP_PENDING, STATUS, UNREPAIRABLE
from otel_gpu.checking import Exit, Found, Verdict, verdict
from otel_gpu.model import Answer, Code, Device, Query, Refused
from tests.machine import gpu
from tests.running import otel_gpu

WELL = {RECOVERY: 0, REMAP_FAILED: 0, REMAP_PENDING: 0}
RESET = "the driver asks for a reset of the GPU"
ALL = "; 1 of 2 GPUs are healthy"


def answered(values: dict[Query, Any]) -> dict[Query, Answer]:
    refused = dict.fromkeys(STATUS.read.queries, Answer(Code.NOT_SUPPORTED))
    return refused | {query: Answer(0, value) for query, value in values.items()}


def two(values: dict[Query, Any]) -> Found:
    """Find a GPU that is well, and one that says this."""
    return Found((gpu(0), gpu(1)), {"GPU-0": answered(WELL), "GPU-1": answered(WELL | values)})


def named(device: Device) -> str:
    return f"({device.pci_address} {device.uuid})"


def test_a_node_whose_gpus_are_well_is_healthy() -> None:
    assert verdict(two({})) == Verdict(Exit.HEALTHY, "healthy: 2 GPUs")
    one = Found((gpu(0),), {"GPU-0": answered(WELL)})
    assert verdict(one, 1) == Verdict(Exit.HEALTHY, "healthy: 1 GPU")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({RECOVERY: 1}, "failed: nvidia5 the driver asks for a reset of the GPU"),
        ({RECOVERY: 2}, "failed: nvidia5 the driver asks for a reboot of the node"),
        ({RECOVERY: 3}, "degraded: nvidia5 the driver asks to drain its peer-to-peer traffic"),
        ({RECOVERY: 99}, "degraded: nvidia5 the driver asks for recovery action 99"),
        ({REMAP_FAILED: 1}, "predicted_failure: nvidia5 a row of its memory could not be remapped"),
        ({BANKS: {"none": 2}}, "predicted_failure: nvidia5 a bank of its memory has no spare rows"),
        (
            {SRAM: {"bThresholdExceeded": 1}},
            "predicted_failure: nvidia5 its SRAM has had too many errors",
        ),
        ({UNREPAIRABLE: 1}, "predicted_failure: nvidia5 its memory is beyond repair"),
        ({REMAP_PENDING: 1}, "degraded: nvidia5 a row remap waits for a reset of the GPU"),
        (
            {REMAP_PENDING: 1, RECOVERY: 1},
            f"failed: nvidia5 {RESET}, a row remap waits for a reset of the GPU",
        ),
    ],
)
def test_what_is_wrong_is_said_in_words(values: dict[Query, Any], words: str) -> None:
    assert verdict(two(values)) == Verdict(Exit.ILL, f"{words} {named(gpu(1))}{ALL}")


@pytest.mark.parametrize("code", [Code.GPU_IS_LOST, Code.RESET_REQUIRED])
def test_a_gpu_that_is_lost_has_failed(code: Code) -> None:
    lost = dict.fromkeys(STATUS.read.queries, Answer(code))
    found = Found((gpu(0), gpu(1)), {"GPU-0": answered(WELL), "GPU-1": lost})
    words = f"failed: nvidia5 is lost or needs a reset {named(gpu(1))}{ALL}"
    assert verdict(found) == Verdict(Exit.ILL, words)


def test_the_worst_comes_first() -> None:
    found = Found(
        (gpu(0), gpu(1)),
        {"GPU-0": answered(WELL | {REMAP_PENDING: 1})},
        hung=frozenset({"GPU-1"}),
    )
    code, line = verdict(found)
    assert (code, line.startswith("failed: nvidia5 a call to the driver hangs")) == (1, True)
    assert f"; nvidia4 a row remap waits for a reset of the GPU {named(gpu(0))}; 0 of 2" in line


def test_a_gpu_that_does_not_open_has_failed() -> None:
    found = Found((gpu(0),), {"GPU-0": answered(WELL)}, [Refused(3, 15, "GPU-3")])
    assert verdict(found).line == f"failed: GPU 3 is lost or needs a reset (GPU-3){ALL}"
    unknown = Found((gpu(0),), {"GPU-0": answered(WELL)}, [Refused(3, 999)])
    assert verdict(unknown).line == f"failed: GPU 3 does not open{ALL}"


def test_a_gpu_that_tells_nothing_is_unknown_unless_another_is_ill() -> None:
    silent = Found((gpu(0),), {"GPU-0": answered({})})
    assert verdict(silent).code is Exit.UNKNOWN
    ill = Found((gpu(0), gpu(1)), {"GPU-0": answered({}), "GPU-1": answered({RECOVERY: 1})})
    assert verdict(ill).code is Exit.ILL


def test_without_a_driver_or_a_gpu_nothing_is_known() -> None:
    assert verdict(Found()) == Verdict(Exit.UNKNOWN, "unknown: there is no GPU")
    none = Found(trouble="no driver: not loaded")
    assert verdict(none) == Verdict(Exit.UNKNOWN, "unknown: no driver: not loaded")


def test_fewer_gpus_than_there_must_be_are_a_failure() -> None:
    code, line = verdict(two({}), 8)
    assert (code, line) == (1, "failed: 2 of 8 GPUs are here; 2 of 2 GPUs are healthy")
    none = verdict(Found(trouble="no driver: not loaded"), 8)
    assert none == (1, "failed: 0 of 8 GPUs are here: no driver: not loaded")


def test_80_characters_name_the_gpu_and_its_trouble() -> None:
    line = verdict(two({REMAP_FAILED: 1})).line
    assert "nvidia5 a row of its memory could not be remapped" in line[:80]


@pytest.mark.parametrize(
    ("backend", "code", "begins"),
    [
        ("simulated", 0, "healthy: 8 GPUs"),
        ("simulated:h200x8,fault=lost:GPU3", 1, "failed: GPU 3 is lost or needs a reset; 7 of"),
        ("simulated:t4,fault=absent", 2, "unknown: no driver: "),
    ],
)
def test_the_command_prints_one_line_and_exits_with_the_verdict(
    backend: str, code: int, begins: str
) -> None:
    done = otel_gpu("check", "--backend", backend)
    assert (done.returncode, done.stdout.startswith(begins)) == (code, True), done.stdout
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_the_command_ends_though_a_gpu_hangs_and_tells_of_the_others() -> None:
    begun_s = time.monotonic()
    done = otel_gpu("check", "--backend", "simulated:h200x8,fault=hang:field230@GPU1")
    assert time.monotonic() - begun_s < 15.0
    assert done.stdout.startswith("failed: nvidia1 a call to the driver hangs ("), done.stdout
    assert done.stdout.endswith("7 of 8 GPUs are healthy\n")
    assert done.returncode == 1


def test_the_command_demands_as_many_gpus_as_it_is_told() -> None:
    done = otel_gpu("check", "--backend", "simulated:h200x8,gpus=7", "--gpus", "8")
    assert (done.returncode, done.stdout) == (
        1,
        "failed: 7 of 8 GPUs are here; 7 of 7 GPUs are healthy\n",
    )
