"""Slurm jobs as owners, by the cgroups of their processes and by the files of a prolog."""

import os
from pathlib import Path

import pytest

from otel_gpu.attribution import View
from otel_gpu.attribution.processes import Processes
from otel_gpu.attribution.slurm import Job, SlurmSource, jobs
from otel_gpu.model import Owner
from tests.attribution.proc import Proc
from tests.machine import gpu, instance

GPUS = (gpu(0), gpu(1), instance(gpu(1), 3))


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path / "proc")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / "jobs"
    directory.mkdir()
    return directory


def source(proc: Proc, directory: Path | None = None, *, insists: bool = False) -> SlurmSource:
    names = {os.getuid(): "ada", 1000: "grace"}
    return SlurmSource(
        directory, Processes(proc.path), insists=insists, user_name=names.__getitem__
    )


def owner(job: str, **more: str) -> Owner:
    return Owner((("slurm.job.id", job), *((f"slurm.{key}", one) for key, one in more.items())))


def test_a_process_is_its_job_s_and_its_user_s(proc: Proc) -> None:
    proc.in_job(7, "4711")
    claims = source(proc).claims(View(GPUS, {"GPU-0": (7,)}))
    assert claims.holders == {("GPU-0", 7): owner("4711", user="ada")}


def test_where_the_path_names_the_user_that_one_counts(proc: Proc) -> None:
    proc.put(7, "/slurm/uid_1000/job_12/step_batch/task_0")
    claims = source(proc).claims(View(GPUS, {"GPU-0": (7,)}))
    assert claims.holders == {("GPU-0", 7): owner("12", user="grace")}


def test_a_file_says_whose_a_gpu_or_an_instance_is(proc: Proc, directory: Path) -> None:
    (directory / "0").write_text("4711\n")
    (directory / "1.3").write_text("4712\n4713\n")
    claims = source(proc, directory).claims(View(GPUS))
    assert claims.owners == {
        "GPU-0": (owner("4711"),),
        "MIG-1-3": (owner("4712"), owner("4713")),
    }


def test_a_file_may_say_more_of_a_job_than_a_cgroup_does(proc: Proc, directory: Path) -> None:
    (directory / "0").write_text("4711 user=grace partition=h200\n")
    proc.in_job(7, "4711")
    claims = source(proc, directory).claims(View(GPUS, {"GPU-0": (7,)}))
    job = owner("4711", user="grace", partition="h200")
    assert claims.owners == {"GPU-0": (job,)}
    assert claims.holders == {("GPU-0", 7): job}


def test_a_job_of_a_file_and_of_a_process_is_one_owner(proc: Proc, directory: Path) -> None:
    (directory / "0").write_text("4711\n")
    proc.in_job(7, "4711")
    claims = source(proc, directory).claims(View(GPUS, {"GPU-0": (7,)}))
    assert claims.owners["GPU-0"] == (claims.holders["GPU-0", 7],)


def test_other_files_and_empty_ones_name_nobody(proc: Proc, directory: Path) -> None:
    for name in ("readme", "0.tmp", "7", "1.9"):
        (directory / name).write_text("4711\n")
    (directory / "0").write_text("\n \n")
    (directory / "1").mkdir()
    assert source(proc, directory).claims(View(GPUS)).owners == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("17\n", [Job("17", {})]),
        ("17\r\n18", [Job("17", {}), Job("18", {})]),
        ("17\n17\n", [Job("17", {})]),
        ("17_4 user=ada partition= x =y", [Job("17_4", {"user": "ada"})]),
        ("", []),
    ],
)
def test_a_line_is_a_job(text: str, expected: list[Job]) -> None:
    assert list(jobs(text)) == expected


def test_a_directory_that_cannot_be_read_is_said_and_its_last_answer_kept(
    proc: Proc, directory: Path
) -> None:
    (directory / "0").write_text("4711\n")
    slurm = source(proc, directory)
    before = slurm.claims(View(GPUS))
    directory.rename(directory.with_name("gone"))
    assert slurm.claims(View(GPUS)) == before
    assert slurm.health()[:3] == ("slurm", False, "unreadable")
    assert str(directory) in slurm.health().detail


def test_where_nobody_insists_it_is_silent_until_it_saw_a_job(proc: Proc) -> None:
    slurm = source(proc)
    slurm.claims(View(GPUS))
    assert slurm.health().dormant
    proc.in_job(7, "4711")
    for _ in range(2):
        slurm.claims(View(GPUS, {"GPU-0": (7,)}))
    assert not slurm.health().dormant


def test_where_no_processes_can_be_seen_it_says_so_if_it_was_asked_for(proc: Proc) -> None:
    slurm = source(proc, insists=True)
    slurm.claims(View(blind="not in the PID namespace of the host"))
    assert slurm.health()[:3] == ("slurm", False, "pid_namespace")


def test_a_user_whom_the_machine_does_not_know_is_a_number(proc: Proc) -> None:
    proc.put(7, "/slurm/uid_3999999999/job_12/step_0")
    claims = SlurmSource(None, Processes(proc.path)).claims(View(GPUS, {"GPU-0": (7,)}))
    assert claims.holders == {("GPU-0", 7): owner("12", user="3999999999")}
