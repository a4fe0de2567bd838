from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from otel_gpu.doctor.facts import Facts
from otel_gpu.doctor.facts.library import Attempt, Candidate, Library, Origin
from otel_gpu.doctor.facts.nodes import Nodes
from otel_gpu.doctor.rules.library import judge
from tests.doctor.box import FOREIGN, Box
from tests.doctor.cases import HEALTHY, LIBRARY, ids, of_box, shut

NAME = "libnvidia-ml.so.1"
NOT_FOUND = Attempt(refused=f"{NAME}: cannot open shared object file")


def of(library: Library) -> list[str]:
    return ids(judge(replace(shut(12), library=library)))


def test_a_healthy_way_to_the_library_gives_no_finding() -> None:
    assert ids(judge(HEALTHY)) == []


def test_nothing_is_said_of_the_way_when_nvml_answered() -> None:
    assert ids(judge(replace(HEALTHY, library=Library()))) == []


def test_a_library_that_is_nowhere_is_missing(tmp_path: Path) -> None:
    (finding,) = judge(of_box(tmp_path, 12))
    assert finding.id == "GPU003"
    assert "/usr/local/nvidia/lib64" in finding.evidence[-1]


def test_the_loader_s_own_words_are_the_first_evidence() -> None:
    (finding,) = judge(replace(shut(12), library=Library(attempt=NOT_FOUND)))
    assert finding.evidence[0] == NOT_FOUND.refused


def test_a_versioned_file_alone_lacks_the_link(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.library("/usr/lib64")
    (tmp_path / f"usr/lib64/{NAME}").unlink()
    (finding,) = judge(of_box(tmp_path, 12))
    assert finding.id == "GPU004"
    assert "libnvidia-ml.so.580.159.04" in finding.evidence[0]


def test_a_library_beside_the_way_is_unreachable(tmp_path: Path) -> None:
    Box(tmp_path).library("/usr/local/nvidia/lib64")
    (finding,) = judge(of_box(tmp_path, 12))
    assert finding.id == "GPU005"
    assert finding.evidence[0].startswith(f"/usr/local/nvidia/lib64/{NAME}")
    assert finding.evidence[-1] == "no LD_LIBRARY_PATH"


def test_an_empty_file_left_in_an_image_is_unusable(tmp_path: Path) -> None:
    Box(tmp_path).write(f"/usr/lib/x86_64-linux-gnu/{NAME}")
    (finding,) = judge(of_box(tmp_path, 12))
    assert finding.id == "GPU006"
    assert "an empty file" in finding.evidence[0]


def test_a_library_for_another_processor_is_unusable(tmp_path: Path) -> None:
    Box(tmp_path).library(content=FOREIGN)
    assert ids(judge(of_box(tmp_path, 12))) == ["GPU006"]


@pytest.mark.parametrize("attempt", [None, Attempt(loaded="/opt/cuda/lib64/stubs/libnvidia-ml.so")])
def test_the_toolkit_s_stub_is_told_by_its_folder(attempt: Attempt | None) -> None:
    stub = "/opt/cuda/lib64/stubs/libnvidia-ml.so"
    candidate = Candidate(f"/opt/cuda/lib64/stubs/{NAME}", Origin.VARIABLE, stub)
    assert of(Library((candidate,), attempt)) == ["GPU007"]


def test_a_sound_file_that_the_loader_refuses_is_told_with_its_words() -> None:
    attempt = Attempt(refused="libc.so.6: version `GLIBC_2.38' not found")
    (finding,) = judge(replace(shut(12), library=Library((LIBRARY,), attempt)))
    assert finding.id == "GPU008"
    assert finding.evidence[-1] == attempt.refused


def test_a_library_that_loads_is_not_what_keeps_the_driver_shut() -> None:
    assert of(Library((LIBRARY,), Attempt(loaded=LIBRARY.real))) == []


def test_libraries_of_two_versions_are_told_even_when_all_is_well() -> None:
    old = Candidate(f"/opt/old/{NAME}", Origin.CACHE, "/opt/old/libnvidia-ml.so.535.1.2", "535.1.2")
    (finding,) = judge(replace(HEALTHY, library=Library((LIBRARY, old))))
    assert finding.id == "GPU009"
    assert finding.evidence[-1] == "in use: 580.159.04"


def test_two_names_of_one_version_are_no_finding() -> None:
    again = replace(LIBRARY, path=f"/lib64/{NAME}")
    assert ids(judge(replace(HEALTHY, library=Library((LIBRARY, again))))) == []


@pytest.mark.parametrize("value", ["", "void", "none"])
def test_a_container_that_asks_for_no_gpu_is_told_so(value: str) -> None:
    facts = replace(shut(12), library=Library(), environment={"NVIDIA_VISIBLE_DEVICES": value})
    assert ids(judge(facts)) == ["GPU003", "GPU001"]


def test_a_variable_that_asks_for_nothing_is_not_blamed_where_all_is_given() -> None:
    facts = replace(shut(999), environment={"NVIDIA_VISIBLE_DEVICES": "void"})
    assert ids(judge(facts)) == []


def test_a_container_with_the_library_and_no_gpu_is_told_so_too() -> None:
    environment = {"NVIDIA_VISIBLE_DEVICES": "none"}
    facts = replace(shut(9), nodes=Nodes(HEALTHY.nodes.control), environment=environment)
    assert ids(judge(facts)) == ["GPU001"]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("compute", ["GPU003", "GPU002"]),
        ("compute, video", ["GPU003", "GPU002"]),
        ("compute,utility", ["GPU003"]),
        ("all", ["GPU003"]),
        ("", ["GPU003"]),  # the runtime's default has utility
    ],
)
def test_capabilities_without_utility_explain_a_missing_library(
    value: str, found: list[str]
) -> None:
    environment = {"NVIDIA_DRIVER_CAPABILITIES": value}
    facts = replace(shut(12), library=Library(), environment=environment)
    assert ids(judge(facts)) == found
    assert ids(judge(replace(facts, nodes=Nodes()))) == ["GPU003"]  # no runtime at all


def test_another_backend_needs_no_library() -> None:
    facts: Facts = replace(shut(12), backend="simulated", library=Library())
    assert ids(judge(facts)) == []
