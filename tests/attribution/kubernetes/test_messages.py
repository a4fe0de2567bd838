"""The reduced table of messages against an answer that the kubelet's own types encoded."""

import json
from pathlib import Path
from typing import Any

from otel_gpu.attribution.kubernetes.messages import GetRequest, ListResponse
from otel_gpu.attribution.kubernetes.resources import Claimed, Container, Pod, pod
from tests.attribution.kubernetes.node import text

FOLDER = Path(__file__).parents[1] / "podresources"
ENCODED = (FOLDER / "answer.bin").read_bytes()


def as_written(container: dict[str, Any]) -> Container:
    claims = container.get("dynamic_resources", ())
    given = [one.get("claim_resources", ()) for one in claims]
    return Container(
        container["name"],
        tuple(
            (devices["resource_name"], tuple(devices["device_ids"]))
            for devices in container.get("devices", ())
        ),
        tuple(
            Claimed(one["driver_name"], one["pool_name"], one["device_name"])
            for several in given
            for one in several
        ),
        sum(not several for several in given),
    )


def test_an_answer_of_the_official_types_is_understood() -> None:
    written = json.loads((FOLDER / "answer.json").read_text(encoding="utf-8"))
    expected = [
        Pod(one["namespace"], one["name"], tuple(map(as_written, one["containers"])))
        for one in written
    ]
    assert [pod(one) for one in ListResponse.FromString(ENCODED).pod_resources] == expected
    assert any(container.claimed for one in expected for container in one.containers)


def test_what_is_not_read_is_kept_as_it_came() -> None:
    assert len(ListResponse.FromString(ENCODED).SerializeToString()) == len(ENCODED)


def test_a_question_for_one_pod_is_encoded_as_the_api_says() -> None:
    asked = GetRequest(pod_namespace="research", pod_name="train-0").SerializeToString()
    assert asked == text(1, "train-0") + text(2, "research")
