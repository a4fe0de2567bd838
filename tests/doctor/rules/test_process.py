from __future__ import annotations

from dataclasses import replace

import pytest

from otel_gpu.doctor.facts.process import CAP_SYS_ADMIN, Namespace, Process
from otel_gpu.doctor.rules.process import judge
from tests.doctor.cases import HEALTHY, ids

RESTRICTED = replace(HEALTHY.module, params={"RmProfilingAdminOnly": "1"})
HOST = Namespace(is_host=True, is_sure=True)


def test_a_process_of_the_host_gives_no_finding() -> None:
    assert ids(judge(HEALTHY)) == []


@pytest.mark.parametrize(
    ("is_sure", "said"), [(True, "namespace 7"), (False, "probably: namespace 7")]
)
def test_a_namespace_of_its_own_is_told_with_how_sure_that_is(said: str, *, is_sure: bool) -> None:
    namespace = Namespace(is_host=False, is_sure=is_sure, evidence="namespace 7")
    (finding,) = judge(replace(HEALTHY, process=Process(namespace=namespace)))
    assert finding.id == "GPU070"
    assert finding.evidence == (said,)


def test_a_namespace_that_is_unknown_is_not_held_against_it() -> None:
    assert ids(judge(replace(HEALTHY, process=Process(namespace=Namespace())))) == []


def test_restricted_profiling_is_told_to_whoever_lacks_the_capability() -> None:
    user = Process(uid=1000, namespace=HOST)
    admin = Process(uid=1000, capabilities=1 << CAP_SYS_ADMIN, namespace=HOST)
    assert ids(judge(replace(HEALTHY, module=RESTRICTED, process=user))) == ["GPU071"]
    assert ids(judge(replace(HEALTHY, module=RESTRICTED, process=admin))) == []
    assert ids(judge(replace(HEALTHY, process=user))) == []


def test_a_choice_for_cuda_is_explained() -> None:
    (finding,) = judge(replace(HEALTHY, environment={"CUDA_VISIBLE_DEVICES": "1"}))
    assert finding.id == "GPU072"
    assert finding.evidence == ("CUDA_VISIBLE_DEVICES=1",)
