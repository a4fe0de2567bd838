from __future__ import annotations

from dataclasses import replace

import pytest

from otel_gpu.doctor.facts.packages import Package, Packages
from otel_gpu.doctor.rules.packages import judge
from tests.doctor.cases import HEALTHY, ids

OURS = Package("nvidia-ml-py", "13.615.71", brings_module=True)
HOME = "/site/pynvml.py"


def of(packages: Packages) -> list[str]:
    return ids(judge(replace(HEALTHY, packages=packages)))


def test_nvidia_s_own_binding_alone_is_no_finding() -> None:
    assert of(HEALTHY.packages) == []


@pytest.mark.parametrize(
    "rival",
    [
        Package("pynvml", "11.5.3", brings_module=True),
        Package("nvidia-ml-py3", "7.352.0", brings_module=True),
        Package("nvidia-ml-py3", "7.352.0", brings_module=None),
    ],
)
def test_a_rival_that_brings_the_module_is_a_fault_whoever_wins(rival: Package) -> None:
    (finding,) = judge(replace(HEALTHY, packages=Packages((OURS, rival), HOME, HOME)))
    assert finding.id == "GPU010"
    assert rival.name in finding.evidence[1]


def test_the_new_pynvml_distribution_does_no_harm() -> None:
    assert of(Packages((OURS, Package("pynvml", "13.0.1", brings_module=False)), HOME, HOME)) == []


def test_a_module_from_elsewhere_is_a_fault() -> None:
    assert of(Packages((OURS,), "/here/pynvml.py", HOME)) == ["GPU010"]


def test_metadata_without_the_module_is_a_fault() -> None:
    assert of(Packages((OURS,), "", HOME)) == ["GPU011"]


def test_no_binding_at_all_is_a_fault() -> None:
    (finding,) = judge(replace(HEALTHY, packages=Packages()))
    assert finding.id == "GPU011"
    assert finding.evidence == ("none is installed",)


def test_another_backend_needs_no_binding() -> None:
    assert ids(judge(replace(HEALTHY, backend="simulated", packages=Packages()))) == []
