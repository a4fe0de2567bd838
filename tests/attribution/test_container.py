"""Containers as owners, by the cgroups of their processes."""

from pathlib import Path

import pytest

from otel_gpu.attribution import Claims, View
from otel_gpu.attribution.container import ContainerSource
from otel_gpu.attribution.processes import Processes
from otel_gpu.model import Owner
from tests.attribution.proc import Proc, container_id

VIEW = View(pids={"GPU-0": (7, 8, 9)})
UID = "7f6c1d2e-0000-4000-8000-000000000001"


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    proc = Proc(tmp_path / "proc")
    proc.in_container(7)
    proc.outside(8)
    proc.in_pod(9, UID)
    return Processes(proc.path)


def box(pid: int) -> Owner:
    return Owner((("container.id", container_id(pid)),))


def test_a_container_owns_its_processes_and_pods_are_another_source_s(
    processes: Processes,
) -> None:
    assert ContainerSource(processes).claims(VIEW) == Claims({}, {("GPU-0", 7): box(7)})


def test_without_that_source_a_pod_s_containers_are_containers(processes: Processes) -> None:
    claims = ContainerSource(processes, pods=True).claims(VIEW)
    assert claims.holders == {("GPU-0", 7): box(7), ("GPU-0", 9): box(9)}


def test_where_nobody_insists_it_is_silent_until_it_saw_a_container(processes: Processes) -> None:
    source = ContainerSource(processes)
    source.claims(View())
    assert source.health().dormant
    source.claims(VIEW)
    assert not source.health().dormant


def test_where_no_processes_can_be_seen_it_says_so_if_it_was_asked_for() -> None:
    view = View(blind="not in the PID namespace of the host")
    source = ContainerSource(insists=True)
    source.claims(view)
    assert source.health()[:3] == ("container", False, "pid_namespace")
    source = ContainerSource()
    source.claims(view)
    assert source.health().dormant
