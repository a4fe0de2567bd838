from __future__ import annotations

import json
from dataclasses import replace

from otel_gpu import __version__
from otel_gpu.doctor.facts import Facts
from otel_gpu.doctor.report import Report, versions
from otel_gpu.doctor.rules import judge
from otel_gpu.model import Refused, System
from tests.doctor.cases import GPUS, HEALTHY, shut


def report(facts: Facts) -> Report:
    return Report(judge(facts), facts, facts.opening.matrix, versions(facts))


def test_warnings_do_not_make_a_machine_unhealthy_and_errors_do() -> None:
    off = replace(HEALTHY.opening, is_persistent={"GPU-0": False})
    assert report(HEALTHY).healthy
    assert report(replace(HEALTHY, opening=off)).healthy
    assert report(replace(HEALTHY, opening=off)).findings
    assert not report(shut(9)).healthy


def test_the_document_has_the_same_keys_whatever_was_found() -> None:
    sound, broken = (json.loads(report(facts).to_json()) for facts in (HEALTHY, shut(9)))
    assert list(sound) == list(broken)
    assert list(sound) == [
        "format",
        "healthy",
        "backend",
        "findings",
        "versions",
        "gpus",
        "readings",
        "facts",
    ]
    assert list(sound["facts"]) == list(broken["facts"])
    assert list(broken["findings"][0]) == [
        "id",
        "severity",
        "title",
        "evidence",
        "meaning",
        "remedy",
        "follows",
        "docs",
    ]


def test_equal_facts_make_equal_documents() -> None:
    assert report(HEALTHY).to_json() == report(replace(HEALTHY)).to_json()


def test_the_document_holds_the_matrix_by_metric_and_gpu() -> None:
    document = json.loads(report(HEALTHY).to_json())
    whole = {"state": "ok", "points": 1, "missing": []}
    assert document["readings"] == {"hw.power": {"nvidia0": whole, "nvidia1": whole}}
    assert [gpu["uuid"] for gpu in document["gpus"]] == ["GPU-0", "GPU-1"]
    assert "matrix" not in document["facts"]["opening"]


def test_facts_and_causes_are_in_the_document() -> None:
    opening = replace(HEALTHY.opening, system=System(devices=GPUS[:1], refused=(Refused(1, 4),)))
    document = json.loads(report(replace(HEALTHY, opening=opening)).to_json())
    assert document["facts"]["nodes"]["control"]["mode"] == 0o666
    assert document["facts"]["opening"]["system"]["refused"] == [
        {"index": 1, "code": 4, "uuid": ""}
    ]


def test_only_versions_that_are_known_are_told() -> None:
    assert versions(HEALTHY)["driver"] == "580.159.04"
    assert versions(HEALTHY)["otel-gpu"] == __version__
    assert versions(HEALTHY)["kernel module"] == "580.159.04"
    assert "driver" not in versions(shut(9))


def test_a_simulation_has_no_kernel_module() -> None:
    assert "kernel module" not in versions(replace(HEALTHY, backend="simulated"))
