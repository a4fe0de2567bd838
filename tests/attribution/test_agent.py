"""The agent on a node of Kubernetes: every form of device id, from the kubelet to the page."""

from __future__ import annotations

import json
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.attribution.kubernetes.node import Node, claim, container
from tests.running import free_port, otel_gpu, page, running, wait_for

BACKEND = "simulated:a100-mig,gpus=3"


def enumerated() -> list[dict[str, str | int]]:
    told = json.loads(otel_gpu("once", "--backend", BACKEND, "--format", "json").stdout)
    return [gpu["identity"] for gpu in told["gpus"]]


def owners(port: int) -> dict[str, str]:
    """Give the pod of each GPU and instance; several are named with a + between them."""
    found: dict[str, list[str]] = {}
    for family in text_string_to_metric_families(page(port)):
        for sample in family.samples:
            if sample.name == "nvidia_gpu_allocation":
                found.setdefault(sample.labels["hw_id"], []).append(sample.labels["k8s_pod_name"])
    return {uuid: "+".join(sorted(pods)) for uuid, pods in found.items()}


def test_every_form_of_device_id_finds_its_gpu_on_the_page(node: Node, tmp_path: Path) -> None:
    devices = enumerated()
    whole = [one for one in devices if not one.get("parent")]
    parts = [one for one in devices if one.get("parent")]
    assert len(whole) == 3
    assert len(parts) >= 5
    split = {one["uuid"]: one for one in whole}

    def old(part: dict[str, str | int]) -> str:
        return f"MIG-{part['parent']}/{part['gpu_instance']}/{part['compute_instance']}"

    def file(part: dict[str, str | int]) -> str:
        return f"nvidia{split[part['parent']]['minor']}/gi{part['gpu_instance']}"

    mig = "nvidia.com/mig-1g.10gb"
    first, second, third, fourth, fifth = parts[:5]
    node.give("uuid", container("main", str(whole[0]["uuid"])))
    node.give("device-file", container("main", f"nvidia{whole[1]['minor']}"))
    node.give("mig-uuid", container("main", str(first["uuid"]), resource=mig))
    node.give("mig-old", container("main", old(second), resource=mig))
    node.give("mig-file", container("main", file(third), resource=mig))
    for number in range(2):
        node.give(f"replica-{number}", container("main", f"{fourth['uuid']}::{number}"))
        node.give(f"vgpu-{number}", container("main", f"{file(fifth)}/vgpu{number}"))
    node.give(
        "own-resource", container("main", str(whole[2]["uuid"]), resource="acme.example/a100")
    )
    node.give("nobody", container("main", claims=[claim("one", ("node", "gpu-77"))]))

    port = free_port()
    config = tmp_path / "agent.json"
    attribution = {
        "kubernetes": "on",
        "pod_resources_socket": str(node.path),
        "resource_names": ["acme.example/*"],
    }
    settings = {
        "version": 1,
        "backend": BACKEND,
        "attribution": attribution,
        "pipeline": [{"prometheus": {"address": f"127.0.0.1:{port}"}}],
    }
    config.write_text(json.dumps(settings), encoding="utf-8")
    with running("run", "--config", str(config)):
        expected = {
            whole[0]["uuid"]: "uuid",
            whole[1]["uuid"]: "device-file",
            whole[2]["uuid"]: "own-resource",
            first["uuid"]: "mig-uuid",
            second["uuid"]: "mig-old",
            third["uuid"]: "mig-file",
            fourth["uuid"]: "replica-0+replica-1",
            fifth["uuid"]: "vgpu-0+vgpu-1",
        }
        wait_for(lambda: owners(port) == expected, "owners")
        text = page(port)
        status = json.loads(page(port, "/debug/status"))
    assert 'nvidia_gpu_shared="true"' in text
    (health,) = status["attribution"]
    assert (health["up"], health["detail"]) == (True, "no GPU is known as node/gpu-77")
