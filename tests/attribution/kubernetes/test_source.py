"""Pods as owners: what the kubelet gave, joined with the processes, the names and the API."""

import threading
from dataclasses import replace
from pathlib import Path

import grpc  # type: ignore[import-untyped]  # noqa: TID251 - the status codes of a real server; no types

from otel_gpu.attribution import View
from otel_gpu.attribution.kubernetes.kubelet import Kubelet
from otel_gpu.attribution.kubernetes.source import Besides, KubernetesSource
from otel_gpu.attribution.processes import Processes
from otel_gpu.model import Owner
from tests.attribution.kubernetes.node import Node, claim, container
from tests.attribution.proc import Proc
from tests.machine import gpu

GPUS = (gpu(0), gpu(1))
UID, OTHER_UID = "7f6c1d2e-0000-4000-8000-000000000001", "7f6c1d2e-0000-4000-8000-000000000002"
TRAIN = (("k8s.namespace.name", "research"), ("k8s.pod.name", "train-0"))
MAIN = (*TRAIN, ("k8s.container.name", "main"))


class Rig:
    """A source with a kubelet, a /proc and a directory of logs that the test fills."""

    def __init__(self, node: Node, tmp_path: Path, timeout_s: float = 5.0) -> None:
        self.node = node
        self.proc = Proc(tmp_path / "proc")
        self.logs = tmp_path / "pods"
        self.logs.mkdir()
        besides = Besides(Processes(self.proc.path), self.logs)
        self.source = KubernetesSource(Kubelet(node.path, timeout_s), (), besides)

    def owners(self, pids: dict[str, tuple[int, ...]] | None = None) -> dict[str, list[Owner]]:
        claims = self.source.claims(View(GPUS, pids or {}))
        return {uuid: list(owners) for uuid, owners in claims.owners.items()}


def test_a_pod_owns_what_it_was_given(node: Node, tmp_path: Path) -> None:
    rig = Rig(node, tmp_path)
    node.give("train-0", container("main", "GPU-0"))
    assert rig.owners() == {"GPU-0": [Owner(MAIN)]}
    assert rig.source.health()[:2] == ("kubernetes", True)


def test_a_pod_that_ends_owns_nothing_any_more(node: Node, tmp_path: Path) -> None:
    rig = Rig(node, tmp_path)
    node.give("train-0", container("main", "GPU-0"))
    rig.owners()
    node.pods.clear()
    assert rig.owners() == {}


def test_of_several_containers_with_one_gpu_none_is_named(node: Node, tmp_path: Path) -> None:
    rig = Rig(node, tmp_path)
    node.give("train-0", container("init", "GPU-0"), container("main", "GPU-0"))
    assert rig.owners() == {"GPU-0": [Owner(TRAIN)]}


def test_the_uid_of_a_pod_is_that_of_its_directory_of_logs(node: Node, tmp_path: Path) -> None:
    rig = Rig(node, tmp_path)
    (rig.logs / f"research_train-0_{UID}").mkdir()
    node.give("train-0", container("main", "GPU-0"))
    assert rig.owners() == {"GPU-0": [Owner(MAIN, (("k8s.pod.uid", UID),))]}


def test_of_two_pods_of_one_name_the_one_that_runs_is_meant(node: Node, tmp_path: Path) -> None:
    rig = Rig(node, tmp_path)
    for uid in (UID, OTHER_UID):
        (rig.logs / f"research_train-0_{uid}").mkdir()
    node.give("train-0", container("main", "GPU-0"))
    assert rig.owners() == {"GPU-0": [Owner(MAIN)]}
    rig.proc.in_pod(7, OTHER_UID)
    assert rig.owners({"GPU-0": (7,)}) == {"GPU-0": [Owner(MAIN, (("k8s.pod.uid", OTHER_UID),))]}


def test_processes_of_a_shared_gpu_are_their_pods(node: Node, tmp_path: Path) -> None:
    rig = Rig(node, tmp_path)
    for name, uid, pid in (("train-0", UID, 7), ("train-1", OTHER_UID, 8)):
        (rig.logs / f"research_{name}_{uid}").mkdir()
        node.give(name, container("main", f"GPU-0::{pid}"))
        rig.proc.in_pod(pid, uid)
    rig.proc.outside(9)
    claims = rig.source.claims(View(GPUS, {"GPU-0": (7, 8, 9)}))
    first, second = claims.owners["GPU-0"]
    assert claims.holders == {("GPU-0", 7): first, ("GPU-0", 8): second}


def test_a_pod_that_was_given_no_gpu_and_uses_one_is_known_by_its_processes(
    node: Node, tmp_path: Path
) -> None:
    rig = Rig(node, tmp_path)
    (rig.logs / f"research_train-0_{UID}").mkdir()
    rig.proc.in_pod(7, UID)
    claims = rig.source.claims(View(GPUS, {"GPU-0": (7,)}))
    assert claims.owners == {}
    assert claims.holders == {("GPU-0", 7): Owner(TRAIN, (("k8s.pod.uid", UID),))}


def test_where_no_name_is_known_the_container_s_id_and_the_uid_are(
    node: Node, tmp_path: Path
) -> None:
    rig = Rig(node, tmp_path)
    rig.proc.in_pod(7, UID)
    claims = rig.source.claims(View(GPUS, {"GPU-0": (7,)}))
    named = Owner((("container.id", "7" * 64),), (("k8s.pod.uid", UID),))
    assert claims.holders == {("GPU-0", 7): named}


def test_where_no_name_is_known_a_process_on_a_given_gpu_is_not_guessed(
    node: Node, tmp_path: Path
) -> None:
    rig = Rig(node, tmp_path)
    node.give("train-0", container("main", "GPU-0"))
    rig.proc.in_pod(7, UID)
    assert rig.source.claims(View(GPUS, {"GPU-0": (7,)})).holders == {}


def test_while_the_kubelet_does_not_answer_its_last_answer_is_kept(
    node: Node, tmp_path: Path
) -> None:
    rig = Rig(node, tmp_path, timeout_s=0.2)
    node.give("train-0", container("main", "GPU-0"))
    before = rig.owners()
    node.hangs.set()
    assert rig.owners() == before
    assert rig.source.health()[:3] == ("kubernetes", False, "timeout")
    node.die()
    assert rig.owners() == before
    assert rig.source.health().reason in {"no_socket", "unavailable"}
    node.hangs = threading.Event()
    node.pods.clear()
    node.serve()
    assert rig.owners() == {}
    assert rig.source.health().up


def test_before_the_first_answer_nobody_owns_anything(node: Node, tmp_path: Path) -> None:
    node.status = grpc.StatusCode.UNIMPLEMENTED
    rig = Rig(node, tmp_path)
    assert rig.owners() == {}
    assert rig.source.health().reason == "unimplemented"


def test_a_claim_that_was_not_prepared_is_asked_for_again(node: Node, tmp_path: Path) -> None:
    rig = Rig(node, tmp_path)
    node.give("train-0", container("main", claims=[claim("one")]))
    rig.owners()
    assert node.asked == ["List", "Get"]
    ready = Node(tmp_path / "none")
    ready.give("train-0", container("main", claims=[claim("one", ("node-1", "gpu-0"))]))
    node.got = ready.pods
    claims = rig.source.claims(View([replace(gpu(0), minor=0)]))
    assert claims.owners == {"GPU-0": (Owner(MAIN),)}


def test_what_no_gpu_is_known_for_is_said_and_is_no_failure(node: Node, tmp_path: Path) -> None:
    rig = Rig(node, tmp_path)
    node.give("train-0", container("main", "GPU-0", "GPU-9"))
    assert rig.owners() == {"GPU-0": [Owner(MAIN)]}
    health = rig.source.health()
    assert (health.up, health.detail) == (True, "no GPU is known as GPU-9")
