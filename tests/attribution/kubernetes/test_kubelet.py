"""PodResources v1 over a real socket: what is understood, and why there is no answer."""

import os
import socket
import time
from pathlib import Path

import grpc  # type: ignore[import-untyped]  # noqa: TID251 - the status codes of a real server; no types
import pytest

from otel_gpu.attribution.kubernetes.kubelet import Kubelet, KubeletError
from otel_gpu.attribution.kubernetes.resources import Claimed, Container, Pod
from tests.attribution.kubernetes.node import Node, claim, container, part


def asked(node: Node, timeout_s: float = 5.0) -> KubeletError:
    with pytest.raises(KubeletError) as caught:
        Kubelet(node.path, timeout_s).pods()
    return caught.value


def test_pods_containers_devices_and_claims_are_understood(node: Node) -> None:
    node.give(
        "train-0",
        container("main", "GPU-0", "GPU-1"),
        container("side", "MIG-1", resource="nvidia.com/mig-1g.10gb"),
    )
    node.give("infer-0", container("main", claims=[claim("one", ("node-1", "gpu-0"))]))
    assert Kubelet(node.path).pods() == [
        Pod(
            "research",
            "train-0",
            (
                Container("main", (("nvidia.com/gpu", ("GPU-0", "GPU-1")),)),
                Container("side", (("nvidia.com/mig-1g.10gb", ("MIG-1",)),)),
            ),
        ),
        Pod(
            "research",
            "infer-0",
            (Container("main", (), (Claimed("gpu.nvidia.com", "node-1", "gpu-0"),)),),
        ),
    ]


def test_a_claim_without_devices_is_not_prepared_yet(node: Node) -> None:
    node.give("infer-0", container("main", claims=[claim("one")]))
    assert Kubelet(node.path).pods()[0].containers == (Container("main", unprepared=1),)


def test_one_pod_is_given_by_its_name(node: Node) -> None:
    node.give("train-0", container("main", "GPU-0"))
    node.give("train-0", container("main", "GPU-1"), namespace="other")
    assert Kubelet(node.path).pod("other", "train-0").namespace == "other"
    with pytest.raises(KubeletError, match="pod not found"):
        Kubelet(node.path).pod("other", "train-1")


def test_a_node_with_more_than_4_mib_of_pods_is_understood(node: Node) -> None:
    ids = [f"GPU-{number:036}" for number in range(1000)]
    for number in range(150):
        node.give(f"pod-{number}", container("main", *ids))
    assert len(Kubelet(node.path).pods()) == 150


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (grpc.StatusCode.UNIMPLEMENTED, "unimplemented"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "limited"),
        (grpc.StatusCode.PERMISSION_DENIED, "permission"),
        (grpc.StatusCode.INTERNAL, "error"),
    ],
    ids=str,
)
def test_a_status_is_a_reason(node: Node, status: grpc.StatusCode, reason: str) -> None:
    node.status = status
    assert asked(node).reason == reason


@pytest.mark.parametrize("raw", [b"\xff" * 20, b"\x0a\x05abc", part(1, b"\x0a\x02\xff\xfe")])
def test_an_answer_that_is_none_is_an_error(node: Node, raw: bytes) -> None:
    node.raw = raw
    assert asked(node).reason == "error"


def test_a_kubelet_that_hangs_is_waited_for_no_longer_than_the_deadline(node: Node) -> None:
    node.hangs.set()
    begun_s = time.monotonic()
    error = asked(node, timeout_s=0.2)
    assert (error.reason, "within 0.2 s" in error.detail) == ("timeout", True)
    assert time.monotonic() - begun_s < 5


def test_no_socket_is_said_with_what_to_do(tmp_path: Path) -> None:
    error = asked(Node(tmp_path / "none" / "kubelet.sock"))
    assert (error.reason, "mount" in error.detail) == ("no_socket", True)


def test_a_file_is_no_socket(tmp_path: Path) -> None:
    path = tmp_path / "kubelet.sock"
    path.touch()
    assert asked(Node(path)).reason == "no_socket"


def test_a_socket_that_nobody_listens_on_is_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "kubelet.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    error = asked(Node(path))
    assert (error.reason, "nobody listens" in error.detail) == ("unavailable", True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open everything; see the next test")
def test_a_directory_that_is_not_ours_is_a_matter_of_permission(tmp_path: Path) -> None:
    path = tmp_path / "closed" / "kubelet.sock"
    path.parent.mkdir(mode=0)
    assert asked(Node(path)).reason == "permission"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_as_nobody_a_socket_of_root_is_a_matter_of_permission(node: Node) -> None:
    node.path.chmod(0o600)
    node.path.parent.chmod(0o700)
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:  # gRPC does not outlive a fork; the look at the socket needs none
        os.setuid(65534)
        try:
            Kubelet(node.path).pods()
            os.write(writing, b"none")
        except KubeletError as error:
            os.write(writing, error.reason.encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(reading, 100) == b"permission"


def test_a_kubelet_that_restarts_is_found_again(node: Node) -> None:
    kubelet = Kubelet(node.path)
    node.give("train-0", container("main", "GPU-0"))
    assert len(kubelet.pods()) == 1
    node.die()
    with pytest.raises(KubeletError):
        kubelet.pods()
    node.serve()
    assert len(kubelet.pods()) == 1
    kubelet.close()
