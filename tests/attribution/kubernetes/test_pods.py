"""The pods of a node as the API tells of them, over a real HTTP connection."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from otel_gpu.attribution import View
from otel_gpu.attribution.kubernetes.api import Api
from otel_gpu.attribution.kubernetes.pods import Allowed, Known, Pods, known
from tests.attribution.kubernetes.cluster import METADATA, Cluster, serving
from tests.running import wait_for

PAUSES_S = (0.02,)
TRAIN = ("research", "train-0")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with serving(Cluster(), tmp_path / "account") as cluster:
        yield cluster


@pytest.fixture
def follow(cluster: Cluster, tmp_path: Path) -> Iterator[Callable[..., Pods]]:
    begun: list[Pods] = []

    def follow(*labels: str, kinds: tuple[str, ...] = (), node: str = "node-1") -> Pods:
        api = Api(cluster.url, tmp_path / "account")
        begun.append(Pods(api, node, Allowed(labels, kinds), PAUSES_S))
        begun[-1].claims(View())
        return begun[-1]

    yield follow
    for pods in begun:
        pods.close()


Follow = Callable[..., Pods]


def test_only_metadata_of_the_pods_that_run_on_this_node_is_asked_for(
    cluster: Cluster, follow: Follow
) -> None:
    cluster.put("train-0")
    assert wait_for(lambda: follow().known, "list") == {TRAIN: Known("uid-train-0", ())}
    path, query = cluster.asked[0]
    running = "status.phase!=Succeeded,status.phase!=Failed"
    assert (path, query["fieldSelector"]) == ("/api/v1/pods", f"spec.nodeName=node-1,{running}")
    assert query["accept"] == METADATA.format("List")


def test_a_list_of_several_pages_is_read_to_its_end(cluster: Cluster, follow: Follow) -> None:
    for number in range(5):
        cluster.put(f"train-{number}")
    pods = follow()
    wait_for(lambda: len(pods.known) == 5, "five pods")


def test_what_comes_changes_and_goes_is_followed(cluster: Cluster, follow: Follow) -> None:
    pods = follow("team")
    wait_for(lambda: pods.health().up, "list")
    cluster.put("train-0", labels={"team": "vision", "other": "no"})
    wait_for(lambda: pods.known.get(TRAIN), "a pod")
    assert pods.known[TRAIN].attributes == (("k8s.pod.label.team", "vision"),)
    cluster.put("train-0", labels={"team": "speech"})
    wait_for(lambda: pods.known[TRAIN].attributes[0][1] == "speech", "another label")
    assert not pods.has_ended(TRAIN)
    cluster.remove("train-0")
    wait_for(lambda: pods.has_ended(TRAIN), "its end")
    assert pods.known == {}
    cluster.put("train-0")
    wait_for(lambda: not pods.has_ended(TRAIN), "a new one of its name")


def test_a_watch_that_is_too_old_is_begun_anew_with_a_list(
    cluster: Cluster, follow: Follow
) -> None:
    cluster.put("train-0")
    pods = follow()
    wait_for(lambda: TRAIN in pods.known, "a pod")
    del cluster.pods[TRAIN]
    cluster.forget()
    wait_for(lambda: pods.has_ended(TRAIN), "another list")
    assert pods.health().up


def test_while_the_api_refuses_what_was_known_is_kept(cluster: Cluster, follow: Follow) -> None:
    cluster.put("train-0")
    pods = follow()
    wait_for(lambda: TRAIN in pods.known, "a pod")
    cluster.status = 403
    cluster.forget()
    wait_for(lambda: pods.health().reason == "permission", "a refusal")
    assert "list and watch" in pods.health().detail
    assert TRAIN in pods.known
    cluster.status = 200
    wait_for(lambda: pods.health().up, "an answer")


def test_a_token_that_was_rotated_is_read_anew(
    cluster: Cluster, follow: Follow, tmp_path: Path
) -> None:
    pods = follow()
    wait_for(lambda: pods.health().up, "an answer")
    cluster.token = "n3w"
    cluster.forget()
    wait_for(lambda: pods.health().reason == "permission", "a refusal")
    (tmp_path / "account" / "token").write_text("n3w\n", encoding="ascii")
    wait_for(lambda: pods.health().up, "an answer")


def test_an_api_that_is_away_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret", encoding="ascii")
    pods = Pods(Api("http://127.0.0.1:9", tmp_path), "node-1", Allowed(), PAUSES_S)
    pods.claims(View())
    assert pods.health()[:3] == ("kubernetes_api", False, "unavailable")
    pods.close()


@pytest.mark.parametrize(
    ("api", "node", "reason"), [(None, "node-1", "no_api"), ("api", "", "no_node")]
)
def test_what_is_lacking_is_said(
    api: str | None, node: str, reason: str, cluster: Cluster, tmp_path: Path
) -> None:
    one = Api(cluster.url, tmp_path / "account") if api else None
    pods = Pods(one, node, Allowed(), PAUSES_S)
    pods.claims(View())
    assert pods.health().reason == reason
    pods.close()


def test_labels_are_those_that_are_allowed() -> None:
    metadata = {"uid": "u", "labels": {"app": "a", "app.kubernetes.io/name": "b", "secret": "c"}}
    assert known(metadata, Allowed(("app", "app.kubernetes.io/*"))).attributes == (
        ("k8s.pod.label.app", "a"),
        ("k8s.pod.label.app.kubernetes.io/name", "b"),
    )


@pytest.mark.parametrize(
    ("kind", "name", "kinds", "expected"),
    [
        ("Job", "train", ("job",), (("k8s.job.name", "train"),)),
        ("StatefulSet", "db", ("statefulset", "job"), (("k8s.statefulset.name", "db"),)),
        ("ReplicaSet", "web-6d4c", ("deployment",), (("k8s.deployment.name", "web"),)),
        (
            "ReplicaSet",
            "web-6d4c",
            ("replicaset", "deployment"),
            (("k8s.deployment.name", "web"), ("k8s.replicaset.name", "web-6d4c")),
        ),
        ("ReplicaSet", "alone", ("deployment",), ()),
        ("Job", "train", (), ()),
        ("Node", "node-1", ("job",), ()),
    ],
)
def test_what_made_a_pod_is_named_by_its_kind(
    kind: str, name: str, kinds: tuple[str, ...], expected: tuple[tuple[str, str], ...]
) -> None:
    references = [
        {"kind": "Job", "name": "not the controller"},
        {"kind": kind, "name": name, "controller": True},
    ]
    metadata = {"labels": {"pod-template-hash": "6d4c"}, "ownerReferences": references}
    assert known(metadata, Allowed((), kinds)).attributes == expected
