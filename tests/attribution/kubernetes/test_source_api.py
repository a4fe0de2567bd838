"""What the API adds to what the kubelet says: labels, makers, UIDs, ends, and claimed devices."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from otel_gpu.attribution import View
from otel_gpu.attribution.kubernetes.api import Api, in_cluster
from otel_gpu.attribution.kubernetes.kubelet import Kubelet
from otel_gpu.attribution.kubernetes.pods import Allowed, Pods
from otel_gpu.attribution.kubernetes.source import SLICES_S, Besides, KubernetesSource
from otel_gpu.attribution.processes import Processes
from otel_gpu.model import Owner
from tests.attribution.kubernetes.cluster import Cluster, serving
from tests.attribution.kubernetes.node import Node, claim, container
from tests.attribution.proc import Proc
from tests.machine import gpu, instance
from tests.running import wait_for

SPLIT = gpu(1)
GPUS = (gpu(0), SPLIT, instance(SPLIT, 3))
MAIN = (
    ("k8s.namespace.name", "research"),
    ("k8s.pod.name", "train-0"),
    ("k8s.container.name", "main"),
)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with serving(Cluster(), tmp_path / "account") as cluster:
        yield cluster


class Rig:
    """A source with a kubelet and an API, and a clock that the test moves."""

    def __init__(self, node: Node, cluster: Cluster, tmp_path: Path) -> None:
        self.api = Api(cluster.url, tmp_path / "account")
        allowed = Allowed(("team",), ("job",))
        self.pods = Pods(Api(cluster.url, tmp_path / "account"), "node-1", allowed, (0.02,))
        self.pods.claims(View())
        self.now_s = 100.0
        self.proc = Proc(tmp_path / "proc")
        besides = Besides(
            Processes(self.proc.path), tmp_path / "none", self.pods, self.api, "node-1"
        )
        self.source = KubernetesSource(Kubelet(node.path), (), besides, lambda: self.now_s)

    def owners(self) -> dict[str, tuple[Owner, ...]]:
        return dict(self.source.claims(View(GPUS)).owners)


@pytest.fixture
def rig(node: Node, cluster: Cluster, tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(node, cluster, tmp_path)
    yield rig
    rig.source.close()
    rig.pods.close()


def test_labels_and_what_made_a_pod_stand_on_its_points_and_its_uid_does_not(
    rig: Rig, node: Node, cluster: Cluster
) -> None:
    node.give("train-0", container("main", "GPU-0"))
    made_by = [{"kind": "Job", "name": "train", "controller": True}]
    cluster.put("train-0", labels={"team": "vision"}, ownerReferences=made_by)
    wait_for(lambda: rig.pods.known, "the pod")
    attributes = (*MAIN, ("k8s.pod.label.team", "vision"), ("k8s.job.name", "train"))
    uid = (("k8s.pod.uid", "uid-train-0"),)
    assert rig.owners() == {"GPU-0": (Owner(attributes, uid),)}


def test_a_pod_that_has_ended_owns_nothing_though_the_kubelet_lists_it(
    rig: Rig, node: Node, cluster: Cluster
) -> None:
    node.give("train-0", container("main", "GPU-0"))
    cluster.put("train-0")
    wait_for(lambda: rig.pods.known, "the pod")
    cluster.remove("train-0")
    wait_for(lambda: not rig.pods.known, "its end")
    assert rig.owners() == {}


def test_a_pod_that_the_api_has_not_told_of_yet_owns_what_it_was_given(
    rig: Rig, node: Node
) -> None:
    node.give("train-0", container("main", "GPU-0"))
    assert rig.owners() == {"GPU-0": (Owner(MAIN),)}


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_a_claimed_instance_is_found_by_its_slice(
    rig: Rig, node: Node, cluster: Cluster, version: str
) -> None:
    attributes = {"attributes": {"uuid": {"string": "MIG-1-3"}}}
    described = {"basic": attributes} if version == "v1beta1" else attributes
    device = {"name": "gpu-1-mig-19-0-1", **described}
    spec = {"driver": "gpu.nvidia.com", "pool": {"name": "node-1"}, "devices": [device]}
    cluster.slices[version] = [{"spec": {"devices": []}}, {"spec": {}}, {"spec": spec}]
    claims = [claim("one", ("node-1", "gpu-1-mig-19-0-1"))]
    node.give("train-0", container("main", claims=claims))
    assert rig.owners() == {"MIG-1-3": (Owner(MAIN),)}
    asked = [query for path, query in cluster.asked if "resourceslices" in path]
    assert {query["fieldSelector"] for query in asked} == {"spec.nodeName=node-1"}


def test_slices_are_looked_at_again_after_a_while_and_not_each_time(
    rig: Rig, node: Node, cluster: Cluster
) -> None:
    def looks() -> int:
        return sum("resourceslices" in path for path, _ in cluster.asked)

    cluster.slices["v1"] = []
    node.give("train-0", container("main", claims=[claim("one", ("node-1", "gpu-9-mig-1"))]))
    for _ in range(3):
        assert rig.owners() == {}
    assert looks() == 1
    rig.now_s += SLICES_S
    rig.owners()
    assert looks() == 2


def test_that_slices_may_not_be_read_is_said(rig: Rig, node: Node, cluster: Cluster) -> None:
    cluster.status = 403
    node.give("train-0", container("main", claims=[claim("one", ("node-1", "gpu-9-mig-1"))]))
    rig.owners()
    health = rig.source.health()
    assert (health.up, "no GPU is known as node-1/gpu-9-mig-1" in health.detail) == (True, True)
    assert "resourceslices: 403" in health.detail


def test_a_whole_gpu_is_found_without_any_slice(rig: Rig, node: Node, cluster: Cluster) -> None:
    cluster.slices["v1"] = []
    node.give("train-0", container("main", claims=[claim("one", ("node-1", "gpu-0"))]))
    devices = [replace(gpu(0), minor=0)]
    assert rig.source.claims(View(devices)).owners == {"GPU-0": (Owner(MAIN),)}


def test_a_pod_of_the_cluster_finds_the_api_and_others_do_not(tmp_path: Path) -> None:
    given = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}
    assert in_cluster(given, tmp_path) is None
    (tmp_path / "token").touch()
    assert in_cluster({}, tmp_path) is None
    found = in_cluster(given, tmp_path)
    assert found is not None
    assert found.url == "https://10.0.0.1:6443"
    six = in_cluster(given | {"KUBERNETES_SERVICE_HOST": "fd00::1"}, tmp_path)
    assert six is not None
    assert six.url == "https://[fd00::1]:6443"
