"""The kubelet hangs, dies and comes back: owners are kept, and nothing waits for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.attribution.kubernetes.node import Node as Kubelet
from tests.attribution.kubernetes.node import container
from tests.faults.node import Node

pytestmark = pytest.mark.thorough

HANG_S = 10.0  # the deadline of a question


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[Kubelet]:
    kubelet = Kubelet(tmp_path / "kubelet.sock")
    kubelet.give("train-0", container("main", "GPU-a"))
    kubelet.give("infer-0", container("main", "GPU-b::0"))
    kubelet.give("infer-1", container("main", "GPU-b::1"))
    kubelet.serve()
    yield kubelet
    kubelet.die()


def pods(node: Node) -> set[tuple[str, str]]:
    return {
        (dict(labels)["hw_id"], dict(labels)["k8s_pod_name"])
        for name, labels in node.samples()
        if name == "nvidia_gpu_allocation"
    }


def slowest_s(node: Node, for_s: float) -> float:
    """Scrape as Prometheus would, only more often, and give the slowest."""
    taken_s = []
    end_s = time.monotonic() + for_s
    while time.monotonic() < end_s:
        begun_s = time.monotonic()
        assert requests.get(f"http://127.0.0.1:{node.port}/metrics", timeout=5).ok
        taken_s.append(time.monotonic() - begun_s)
        time.sleep(0.05)
    return max(taken_s)


def test_a_kubelet_that_hangs_dies_and_comes_back_costs_neither_scrapes_nor_owners(
    node: Node, kubelet: Kubelet
) -> None:
    attribution = {"kubernetes": "on", "pod_resources_socket": str(kubelet.path)}
    node.start(attribution=attribution)
    held = {("GPU-a", "train-0"), ("GPU-b", "infer-0"), ("GPU-b", "infer-1")}
    node.until(lambda: pods(node) == held, "owners")
    assert node.by_gpu("hw_power_watts", k8s_pod_name="train-0").keys() == {"GPU-a"}
    assert node.by_gpu("hw_power_watts", nvidia_gpu_shared="true").keys() == {"GPU-b"}
    assert node.value("otel_gpu_attribution_up", otel_gpu_source="kubernetes") == 1

    kubelet.hangs.set()
    asked = len(kubelet.asked)
    node.until(lambda: len(kubelet.asked) > asked, "question that is not answered")
    assert slowest_s(node, HANG_S) < HANG_S / 5
    timeout = {"otel_gpu_source": "kubernetes", "otel_gpu_reason": "timeout"}
    node.until(lambda: node.value("otel_gpu_attribution_up", **timeout) == 0, "reason")
    assert node.value("otel_gpu_attribution_held_seconds") is not None
    assert pods(node) == held
    assert node.is_well()
    assert len(node.watts()) == 3

    kubelet.die()
    node.until(
        lambda: node.value("otel_gpu_attribution_up", otel_gpu_reason="no_socket") == 0, "reason"
    )
    assert pods(node) == held

    kubelet.hangs.clear()
    kubelet.pods.clear()
    kubelet.give("train-1", container("main", "GPU-c"))
    kubelet.serve()
    node.until(lambda: pods(node) == {("GPU-c", "train-1")}, "other owners")
    assert node.value("otel_gpu_attribution_held_seconds") is None


def test_a_node_without_the_kubelet_s_socket_says_so_and_is_read_all_the_same(
    node: Node, tmp_path: Path
) -> None:
    nowhere = {"kubernetes": "on", "pod_resources_socket": str(tmp_path / "none.sock")}
    node.start(attribution=nowhere)
    reason = {"otel_gpu_source": "kubernetes", "otel_gpu_reason": "no_socket"}
    node.until(lambda: node.value("otel_gpu_attribution_up", **reason) == 0, "reason")
    assert len(node.watts()) == 3
    (told,) = [one for one in node.status()["attribution"] if one["name"] == "kubernetes"]
    assert "mount the kubelet's pod-resources directory" in told["detail"]
