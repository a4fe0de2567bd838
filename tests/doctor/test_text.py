"""What a person reads, whole, for broken machines. `pytest --accept` rewrites the golden files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from errno import EPERM
from pathlib import Path

import pytest

from otel_gpu.doctor.facts import Facts
from otel_gpu.doctor.facts.process import Namespace
from otel_gpu.doctor.matrix import Cell, Matrix, Row
from otel_gpu.doctor.report import Report
from otel_gpu.doctor.rules import CATALOGUE, judge
from otel_gpu.doctor.text import lines, markdown
from otel_gpu.model import Missing, Reason, Refused, System
from tests.doctor.box import Box
from tests.doctor.cases import GPUS, HEALTHY, of_box, shut

GOLDEN = Path(__file__).parent / "golden"
VERSIONS = {"otel-gpu": "1.2.3", "kernel module": "580.159.04"}


def text(facts: Facts) -> str:
    report = Report(judge(facts), facts, facts.opening.matrix, VERSIONS)
    return "\n".join(lines(report)) + "\n"


def container_without_the_runtime(root: Path) -> Facts:
    """A container on a GPU host: the host's /proc and /sys shine through, nothing was mounted."""
    box = Box(root)
    box.module()
    box.gpu(0)
    box.gpu(1)
    box.process(1000, "0000000000000000")
    box.namespace(4026532417)
    facts = of_box(root, 12, {"NVIDIA_DRIVER_CAPABILITIES": "compute"})
    return shut(12, "NVML did not start: NVML Shared Library Not Found (code 12)", facts)


def upgrade_without_a_reload(root: Path) -> Facts:
    """A host whose driver was upgraded while the old module stayed loaded."""
    box = Box(root)
    box.module("570.86.10")
    box.library("/usr/lib/x86_64-linux-gnu", "580.159.04")
    for name in ("nvidiactl", "nvidia0"):
        box.device(name)
    box.gpu(0)
    box.process()
    box.namespace(4026531836)
    return shut(18, "NVML did not start: RM has detected a mismatch (code 18)", of_box(root, 18))


def devices_taken_away(_root: Path) -> Facts:
    """A container after systemctl daemon-reload: the mode allows, the control group does not."""
    gpus = tuple(replace(node, errno=EPERM) for node in HEALTHY.nodes.gpus)
    nodes = replace(HEALTHY.nodes, control=replace(HEALTHY.nodes.control, errno=EPERM), gpus=gpus)
    namespace = Namespace(is_host=False, is_sure=True, evidence="namespace 7 is not the first")
    process = replace(HEALTHY.process, namespace=namespace)
    facts = replace(HEALTHY, nodes=nodes, process=process)
    return shut(999, "NVML did not start: Unknown Error (code 999)", facts)


def one_gpu_gone(_root: Path) -> Facts:
    """A host on which one of two GPUs fell off the bus, and the other lacks a sensor."""
    sensor = Missing(Reason.UNSUPPORTED, "no such sensor", (("hw.sensor", "memory"),))
    rows = (
        Row("hw.power", (Cell(1),)),
        Row("hw.temperature", (Cell(1, (sensor,)),)),
        Row("hw.energy", (Cell(0, (Missing(Reason.PERMISSION, "GetTotalEnergyConsumption"),)),)),
    )
    system = System(devices=GPUS[:1], refused=(Refused(1, 15),))
    opening = replace(
        HEALTHY.opening,
        system=system,
        matrix=Matrix(GPUS[:1], rows, (True,)),
        is_persistent={"GPU-0": False},
    )
    return replace(HEALTHY, opening=opening)


@pytest.mark.parametrize(
    "machine",
    [
        container_without_the_runtime,
        upgrade_without_a_reload,
        devices_taken_away,
        one_gpu_gone,
    ],
)
def test_a_broken_machine_reads_like_this(
    tmp_path: Path, machine: Callable[[Path], Facts], *, accept: bool
) -> None:
    file = GOLDEN / f"{machine.__name__}.txt"
    written = text(machine(tmp_path))
    if accept:
        file.write_text(written, encoding="utf-8")
    assert written == file.read_text(encoding="utf-8"), "look at the difference, then --accept"


def test_a_healthy_machine_is_said_to_be_so_in_the_first_line() -> None:
    first, *rest = text(HEALTHY).splitlines()
    assert first == "otel-gpu doctor, backend nvml: healthy; 0 errors, 0 warnings, 0 notes"
    assert "Readings: 1 of 1 metrics are whole on every GPU that answers" in rest


def test_long_evidence_is_cut_on_a_terminal_and_says_so() -> None:
    system = System(refused=tuple(Refused(index, 15) for index in range(20)))
    facts = replace(HEALTHY, opening=replace(HEALTHY.opening, system=system))
    written = text(facts)
    assert "index 11: code 15" in written
    assert "index 12: code 15" not in written
    assert "and 9 more (--format json has all)" in written


def test_no_line_is_wider_than_a_terminal_but_for_names() -> None:
    for line in text(shut(12)).splitlines():
        assert len(line) <= 100 or " " not in line.strip()


def test_a_gpu_that_does_not_answer_is_marked_in_the_list() -> None:
    matrix = replace(HEALTHY.opening.matrix, up=(True, False))
    written = text(replace(HEALTHY, opening=replace(HEALTHY.opening, matrix=matrix)))
    assert "GPU-1  0000:01:00.0  does not answer" in written


def test_the_page_has_every_entry_under_a_heading_of_its_number() -> None:
    page = markdown().splitlines()
    assert [line for line in page if line.startswith("### ")] == [f"### {one}" for one in CATALOGUE]
    for entry in CATALOGUE.values():
        assert f"**{entry.title}** ({entry.severity})" in page
        assert entry.meaning in page
        assert f"What to do: {entry.remedy}" in page
        assert all(f"[{cause}](#{cause.lower()})" in markdown() for cause in entry.follows)
