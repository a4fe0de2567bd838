"""Which GPUs and instances the configuration takes."""

import pytest

from otel_gpu.selection import Include, Mig, chosen
from tests.machine import gpu, instance

PLAIN, SLICED = gpu(0), gpu(1)
ONE, TWO = instance(SLICED, 1), instance(SLICED, 2)
ALL = [PLAIN, SLICED, ONE, TWO]


def names(include: Include = "all", mig: Mig = "both") -> list[str]:
    return [device.uuid for device in chosen(ALL, include, mig)]


def test_all_is_all() -> None:
    assert names() == ["GPU-0", "GPU-1", "MIG-1-1", "MIG-1-2"]


@pytest.mark.parametrize("word", [0, "0", "GPU-0", "gpu-0", "0000:3b:00.0", "0000:3B:00.0"])
def test_a_gpu_is_named_by_index_uuid_or_address_in_any_case(word: str | int) -> None:
    assert names([word]) == ["GPU-0"]


def test_an_instance_goes_with_its_gpu() -> None:
    assert names([1]) == ["GPU-1", "MIG-1-1", "MIG-1-2"]
    assert names(["GPU-1"]) == ["GPU-1", "MIG-1-1", "MIG-1-2"]


def test_an_instance_alone_is_named_by_its_uuid() -> None:
    assert names(["MIG-1-2"]) == ["MIG-1-2"]


def test_what_is_not_there_selects_nothing() -> None:
    assert names([7, "GPU-7", "0000:ff:00.0"]) == []
    assert names([]) == []


def test_an_unknown_address_is_not_an_empty_name() -> None:
    assert names([""]) == []


@pytest.mark.parametrize(
    ("mig", "expected"),
    [
        ("gpus", ["GPU-0", "GPU-1"]),
        ("instances", ["GPU-0", "MIG-1-1", "MIG-1-2"]),
        ("both", ["GPU-0", "GPU-1", "MIG-1-1", "MIG-1-2"]),
    ],
)
def test_mig_says_which_of_a_gpu_and_its_instances_are_read(mig: Mig, expected: list[str]) -> None:
    assert names(mig=mig) == expected


def test_a_gpu_without_instances_is_read_when_only_instances_are_asked_for() -> None:
    assert [device.uuid for device in chosen([PLAIN, SLICED], "all", "instances")] == [
        "GPU-0",
        "GPU-1",
    ]


def test_both_choices_hold_together() -> None:
    assert names([1], "gpus") == ["GPU-1"]
    assert names([1], "instances") == ["MIG-1-1", "MIG-1-2"]
    assert names(["MIG-1-1"], "gpus") == []
