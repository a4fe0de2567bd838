"""The reduced table of messages against an answer that the kubelet's own types encoded."""

from pathlib import Path

from otel_gpu.attribution.kubernetes.messages import GetRequest, ListResponse
from otel_gpu.attribution.kubernetes.resources import Claimed, Container, Pod, pod
from tests.attribution.kubernetes.node import text

ANSWER = Path(__file__).parent / "official" / "answer.bin"  # made by main.go beside it


def test_an_answer_of_the_official_types_is_understood() -> None:
    answer = ListResponse.FromString(ANSWER.read_bytes())
    devices = (
        ("nvidia.com/gpu", ("GPU-a", "GPU-b")),
        ("nvidia.com/mig-1g.10gb", ("MIG-c",)),
    )
    claimed = (Claimed("gpu.nvidia.com", "node-1", "gpu-0"),)
    assert [pod(one) for one in answer.pod_resources] == [
        Pod("research", "train-0", (Container("main", devices), Container("sidecar"))),
        Pod("production", "infer-0", (Container("main", (), claimed, unprepared=1),)),
    ]


def test_what_is_not_read_is_kept_as_it_came() -> None:
    encoded = ANSWER.read_bytes()
    assert len(ListResponse.FromString(encoded).SerializeToString()) == len(encoded)


def test_a_question_for_one_pod_is_encoded_as_the_api_says() -> None:
    asked = GetRequest(pod_namespace="research", pod_name="train-0").SerializeToString()
    assert asked == text(1, "train-0") + text(2, "research")
