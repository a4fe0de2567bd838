"""The queries of docs/attribution.md, asked of a real Prometheus that scrapes a node with pods.

The kubelet's side is spoken by Kubernetes' own types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.running import otel_gpu

from .agent import Agent
from .binaries import Binaries
from .node import Kubelet
from .servers import Prometheus

pytestmark = pytest.mark.e2e

ENERGY = "nvidia_gpu_workload_energy_joules_total"
BACKEND = "simulated:h200x8,gpus=4"
TEXT = (Path(__file__).parents[2] / "docs" / "attribution.md").read_text(encoding="utf-8")
QUERIES = [
    query
    for block in re.findall(r"```promql\n(.*?)```", TEXT, re.DOTALL)
    for query in block.strip().split("\n\n")
]


@dataclass(frozen=True)
class Told:
    """What each query of the page finds, as (namespace, pod, GPU), without what it lacks."""

    uuids: list[str]
    found: list[set[tuple[str, str, str]]]


@pytest.fixture(scope="module")
def told(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    folder = tmp_path_factory.mktemp("attribution")
    listed = json.loads(otel_gpu("once", "--backend", BACKEND, "--format", "json").stdout)
    uuids = [gpu["identity"]["uuid"] for gpu in listed["gpus"]]
    kubelet = Kubelet(binaries, folder)
    kubelet.give(
        {
            ("research", "train-0"): uuids[:2],
            ("production", "infer-0"): [f"{uuids[2]}::0"],
            ("production", "infer-1"): [f"{uuids[2]}::1"],
        }
    )
    attribution = {"kubernetes": "on", "pod_resources_socket": str(kubelet.path)}
    with (
        kubelet,
        Agent(folder, backend=BACKEND, config={"attribution": attribution}) as agent,
        Prometheus(binaries, folder, targets=[agent.target]) as prometheus,
    ):
        # An increase needs two samples, and the energy is read every 5 s.
        prometheus.wait_for_query(f"increase({ENERGY}[1d]) > 0", 20)
        yield Told(uuids, [places(prometheus, query) for query in QUERIES])


def places(prometheus: Prometheus, query: str) -> set[tuple[str, str, str]]:
    found = [one["metric"] for one in prometheus.query(query)]
    return {
        (its.get("k8s_namespace_name", ""), its.get("k8s_pod_name", ""), its.get("hw_id", ""))
        for its in found
    }


def test_the_page_has_the_queries_that_are_tested_here() -> None:
    assert len(QUERIES) == 3


def test_power_by_namespace_leaves_out_what_is_nobody_s_alone(told: Told) -> None:
    assert told.found[0] == {("research", "", ""), ("", "", "")}


def test_what_has_no_owner_of_its_own_is_joined_by_the_allocation(told: Told) -> None:
    assert told.found[1] == {("research", "train-0", uuid) for uuid in told.uuids[:2]}


def test_energy_is_there_for_each_pod_and_for_nobody(told: Told) -> None:
    found = {(namespace, pod) for namespace, pod, _ in told.found[2]}
    assert {("research", "train-0"), ("", "")} <= found
