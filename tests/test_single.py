"""One sweep has what the configuration lets through, and says what it adds to everything."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_gpu import single
from otel_gpu.config import Settings
from otel_gpu.model import Snapshot

BACKEND = "simulated:h200x8,gpus=2"
MINE = {"team": "ml", "rack.slot": 7}


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    """Read all that the box has."""
    return single.sweep(Settings.model_validate({"backend": BACKEND, "metrics": FULL}))


FULL = {"profile": "full"}


def resources(snapshot: Snapshot, **sections: Any) -> list[dict[str, Any]]:
    """Give what these settings publish of a snapshot, by Resource."""
    settings = Settings.model_validate({"backend": BACKEND, **sections})
    found: list[dict[str, Any]] = json.loads(single.as_otlp(settings, snapshot))["resourceMetrics"]
    return found


def names(snapshot: Snapshot, **metrics: Any) -> set[str]:
    return {
        metric["name"]
        for one in resources(snapshot, metrics=metrics)
        for scope in one["scopeMetrics"]
        for metric in scope["metrics"]
    }


def test_globs_leave_out_and_let_in_whatever_the_profile(snapshot: Snapshot) -> None:
    every, core = names(snapshot, **FULL), names(snapshot, profile="core")
    links = {name for name in every if name.startswith("nvidia.gpu.nvlink.")}
    assert links
    assert not links <= core
    assert names(snapshot, profile="core", enable=["nvidia.gpu.nvlink.*"]) == core | links
    assert names(snapshot, **FULL, disable=["nvidia.gpu.nvlink.*"]) == every - links


def test_what_is_left_out_is_not_let_in_again(snapshot: Snapshot) -> None:
    assert names(snapshot, profile="core", enable=["hw.*"], disable=["*"]) == set()


def test_a_list_of_ones_own_has_nothing_else(snapshot: Snapshot) -> None:
    mine = names(snapshot, profile="none", enable=["hw.power", "hw.gpu.*"])
    hw = {name for name in names(snapshot, **FULL) if name.startswith("hw.gpu.")}
    assert mine == hw | {"hw.power"}
    assert names(snapshot, profile="none") == set()


def test_static_attributes_are_on_every_resource(snapshot: Snapshot) -> None:
    found = resources(snapshot, resource={"attributes": MINE})
    assert len(found) == 3  # the node and two GPUs
    for one in found:
        said = {each["key"]: each["value"] for each in one["resource"]["attributes"]}
        assert said["team"] == {"stringValue": "ml"}
        assert said["rack.slot"] == {"intValue": "7"}


def test_static_attributes_are_on_the_one_resource_of_a_node(snapshot: Snapshot) -> None:
    (one,) = resources(snapshot, resource={"attributes": MINE, "scope": "node"})
    assert {"key": "team", "value": {"stringValue": "ml"}} in one["resource"]["attributes"]


def test_static_attributes_are_on_the_page_s_target(snapshot: Snapshot) -> None:
    settings = Settings.model_validate({"backend": BACKEND, "resource": {"attributes": MINE}})
    page = single.as_prometheus(settings, snapshot)
    (target,) = [line for line in page.splitlines() if line.startswith("target_info{")]
    assert 'team="ml"' in target
    assert 'rack_slot="7"' in target


def test_otlp_json_is_one_line(snapshot: Snapshot) -> None:
    assert "\n" not in single.as_otlp(Settings(backend=BACKEND), snapshot)
