from __future__ import annotations

from dataclasses import replace

import pytest

from otel_gpu.doctor.facts import Facts
from otel_gpu.doctor.matrix import Matrix
from otel_gpu.doctor.rules.gpus import judge
from otel_gpu.model import Device, Refused, System
from tests.doctor.cases import GPUS, HEALTHY, ids, shut


def with_system(system: System, facts: Facts = HEALTHY) -> Facts:
    return replace(facts, opening=replace(facts.opening, system=system))


def test_gpus_that_answer_give_no_finding() -> None:
    assert ids(judge(HEALTHY)) == []


def test_nothing_is_said_of_gpus_while_the_driver_is_shut() -> None:
    assert ids(judge(shut(9))) == []


def test_a_count_of_none_is_an_error_with_the_files_that_are_open() -> None:
    opening = replace(HEALTHY.opening, system=System(), matrix=Matrix())
    (finding,) = judge(replace(HEALTHY, opening=opening))
    assert finding.id == "GPU050"
    assert finding.evidence == (
        "GPUs that NVML counts: 0; device files open to this process: 2",
        "GPUs that the kernel module drives: 2",
    )


def test_a_box_without_a_gpu_is_a_fault_of_every_backend() -> None:
    opening = replace(HEALTHY.opening, system=System(), matrix=Matrix())
    assert ids(judge(replace(HEALTHY, backend="simulated", opening=opening))) == ["GPU050"]


@pytest.mark.parametrize(
    ("code", "found"),
    [(15, "GPU051"), (999, "GPU051"), (16, "GPU052"), (4, "GPU053"), (8, "GPU054")],
)
def test_each_refusal_of_a_gpu_has_its_entry(code: int, found: str) -> None:
    system = System(devices=GPUS[:1], refused=(Refused(1, code, "GPU-1"),))
    (finding,) = judge(with_system(system))
    assert finding.id == found
    assert finding.evidence == (
        f"index 1, GPU-1: code {code}",
        "driven by the module and not opened: 0000:01:00.0",
    )


def test_refusals_of_one_kind_are_one_finding() -> None:
    system = System(refused=(Refused(0, 15), Refused(1, 999), Refused(2, 16)))
    facts = replace(HEALTHY, module=replace(HEALTHY.module, gpus=None))
    lost, reset = judge(with_system(system, facts))
    assert lost.evidence == ("index 0: code 15", "index 1: code 999")
    assert reset.evidence == ("index 2: code 16",)


def test_a_gpu_that_hangs_is_named_with_its_call_and_nothing_else_is_said_of_it() -> None:
    hung = (("nvmlDeviceGetTemperatureV", "GPU-1"),)
    matrix = replace(HEALTHY.opening.matrix, up=(True, False))
    opening = replace(HEALTHY.opening, hung=hung, matrix=matrix)
    (finding,) = judge(replace(HEALTHY, opening=opening))
    assert finding.id == "GPU055"
    assert finding.evidence == ("nvmlDeviceGetTemperatureV on GPU GPU-1",)


def test_an_instance_is_silent_with_its_gpu() -> None:
    part = Device(uuid="MIG-1", index=1, minor=1, parent="GPU-1", gpu_instance=1)
    opening = replace(
        HEALTHY.opening,
        hung=(("nvmlDeviceGetTemperatureV", "GPU-1"),),
        matrix=Matrix((*GPUS, part), (), (True, False, False)),
    )
    assert ids(judge(replace(HEALTHY, opening=opening))) == ["GPU055"]


def test_a_gpu_that_opens_and_says_nothing_is_told_by_name() -> None:
    matrix = replace(HEALTHY.opening.matrix, up=(True, False))
    opening = replace(HEALTHY.opening, matrix=matrix)
    (finding,) = judge(replace(HEALTHY, opening=opening))
    assert finding.id == "GPU056"
    assert finding.evidence == ("nvidia1: GPU-1, 0000:01:00.0, NVIDIA H200",)


def test_fewer_gpus_than_open_files_are_a_warning() -> None:
    assert ids(judge(with_system(System(devices=GPUS[:1])))) == ["GPU057"]


def test_instances_are_not_counted_as_gpus() -> None:
    part = Device(uuid="MIG-1", index=0, minor=0, parent="GPU-0", gpu_instance=1)
    assert ids(judge(with_system(System(devices=(GPUS[0], part))))) == ["GPU057"]


def test_persistence_that_is_off_is_told_and_unknown_is_not() -> None:
    opening = replace(HEALTHY.opening, is_persistent={"GPU-0": False})
    (finding,) = judge(replace(HEALTHY, opening=opening))
    assert finding.id == "GPU058"
    assert finding.evidence == ("nvidia0: GPU-0, 0000:00:00.0, NVIDIA H200",)
