from __future__ import annotations

from dataclasses import replace

import pytest

from otel_gpu.doctor.facts import Facts
from otel_gpu.doctor.matrix import Cell, Matrix, Row
from otel_gpu.doctor.rules.readings import REASONS, judge
from otel_gpu.model import Missing, Reason
from tests.doctor.cases import GPUS, HEALTHY, ids


def missing(reason: Reason, *, up: tuple[bool, bool] = (True, True)) -> Facts:
    gap = Cell(0, (Missing(reason, "nvmlDeviceGetPowerUsage"),))
    matrix = Matrix(GPUS, (Row("hw.power", (Cell(1), gap)),), up)
    return replace(HEALTHY, opening=replace(HEALTHY.opening, matrix=matrix))


def test_whole_readings_give_no_finding() -> None:
    assert ids(judge(HEALTHY)) == []


@pytest.mark.parametrize(
    ("reason", "found"),
    [
        (Reason.PERMISSION, "GPU060"),
        (Reason.INVALID, "GPU061"),
        (Reason.TIMEOUT, "GPU061"),
        (Reason.NOT_READY, "GPU061"),
        (Reason.UNSUPPORTED, "GPU062"),
    ],
)
def test_each_reason_has_its_entry_with_metric_and_gpu(reason: Reason, found: str) -> None:
    (finding,) = judge(missing(reason))
    assert finding.id == found
    assert finding.evidence == ("hw.power: nvidia1",)


def test_what_the_process_namespace_hides_is_said_there() -> None:
    assert ids(judge(missing(Reason.PID_NAMESPACE))) == []


def test_every_other_reason_is_judged_once() -> None:
    judged = [reason for reasons in REASONS.values() for reason in reasons]
    assert sorted(judged) == sorted(set(Reason) - {Reason.PID_NAMESPACE})


def test_a_gpu_that_does_not_answer_is_not_told_metric_by_metric() -> None:
    assert ids(judge(missing(Reason.TIMEOUT, up=(True, False)))) == []


def test_what_no_gpu_offers_is_told_in_few_words() -> None:
    gap = Cell(0, (Missing(Reason.UNSUPPORTED, "no fan"),))
    matrix = Matrix(GPUS, (Row("hw.fan.speed_ratio", (gap, gap)),), (True, True))
    facts = replace(HEALTHY, opening=replace(HEALTHY.opening, matrix=matrix))
    (finding,) = judge(facts)
    assert finding.evidence == ("hw.fan.speed_ratio: every GPU",)
