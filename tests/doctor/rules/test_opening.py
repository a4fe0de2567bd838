from __future__ import annotations

from dataclasses import replace

import pytest

from otel_gpu.doctor.facts.opening import Opening, Trouble
from otel_gpu.doctor.rules.opening import judge
from otel_gpu.model import System
from tests.doctor.cases import HEALTHY, ids, shut

HANG = (("nvmlInitWithFlags", ""),)


def test_an_open_driver_gives_no_finding() -> None:
    assert ids(judge(HEALTHY)) == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        (12, "GPU040"),
        (9, "GPU041"),
        (4, "GPU042"),
        (18, "GPU043"),
        (17, "GPU044"),
        (999, "GPU044"),
        (20, "GPU048"),
        (4711, "GPU048"),
        (2, "GPU049"),
    ],
)
def test_each_code_has_its_entry_and_what_nvml_said_is_evidence(code: int, found: str) -> None:
    (finding,) = judge(shut(code, "NVML did not start: words\nand more words"))
    assert finding.id == found
    assert finding.evidence == ("NVML did not start: words", "and more words", "after 0.1 s")


@pytest.mark.parametrize(
    ("opening", "found"),
    [
        (Opening(trouble=Trouble(10, "did not return"), hung=HANG), "GPU045"),
        (Opening(trouble=Trouble(999, "ended with status -11"), has_died=True), "GPU046"),
        (Opening(is_late=True), "GPU047"),
        (Opening(system=System(), is_late=True), "GPU047"),
    ],
)
def test_a_driver_that_does_not_come_back_is_told_from_one_that_says_no(
    opening: Opening, found: str
) -> None:
    assert ids(judge(replace(HEALTHY, opening=opening))) == [found]


def test_every_call_that_hangs_is_named() -> None:
    hung = (("nvmlDeviceGetUUID", "0"), ("nvmlDeviceGetUUID", "1"))
    opening = Opening(trouble=Trouble(10, "nvmlDeviceGetUUID on GPU 1 did not return"), hung=hung)
    (finding,) = judge(replace(HEALTHY, opening=opening))
    assert finding.evidence[:2] == (
        "nvmlDeviceGetUUID on GPU 0 did not return",
        "nvmlDeviceGetUUID on GPU 1 did not return",
    )
