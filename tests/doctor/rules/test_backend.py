from __future__ import annotations

from dataclasses import replace

from otel_gpu.doctor.rules.backend import judge
from tests.doctor.cases import HEALTHY


def test_a_simulation_is_said_to_be_one() -> None:
    (finding,) = judge(replace(HEALTHY, backend="simulated:t4"))
    assert finding.id == "GPU090"
    assert finding.evidence == ("backend simulated:t4",)


def test_the_driver_of_this_machine_needs_no_note() -> None:
    assert list(judge(HEALTHY)) == []
