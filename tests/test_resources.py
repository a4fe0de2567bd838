"""The Resources of node, GPU and owner: what they say, and that they are the same tomorrow."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from otel_gpu.model import NODE, AttributeValue, Owner, ResourceKey, Snapshot
from otel_gpu.resources import SCHEMA_URL, Resources, architecture, gpu, machine_id, node
from tests.machine import gpu as device
from tests.machine import instance

GPU, SECOND = device(0), device(1)
SLICE = instance(GPU)
POD = Owner(
    (("k8s.namespace.name", "research"), ("k8s.pod.name", "train-0")), (("k8s.pod.uid", "7f6c"),)
)
OTHER = Owner((("k8s.namespace.name", "research"), ("k8s.pod.name", "train-1")))
SNAPSHOT = Snapshot(devices={one.uuid: one for one in (GPU, SECOND, SLICE)})
ATTRIBUTES = {"service.name": "otel-gpu", "host.name": "node-1", "host.id": "0123"}
KEYS = [
    NODE,
    ResourceKey(GPU.uuid),
    ResourceKey(SECOND.uuid),
    ResourceKey(SLICE.uuid),
    ResourceKey(GPU.uuid, POD),
    ResourceKey(GPU.uuid, OTHER),
    ResourceKey(SECOND.uuid, POD),
]


def made(
    key: ResourceKey, attributes: Mapping[str, AttributeValue] = ATTRIBUTES
) -> Mapping[str, object]:
    return dict(Resources(attributes, lambda: SNAPSHOT)(key).attributes)


def instance_id(key: ResourceKey, **attributes: AttributeValue) -> str:
    named = {name.replace("_", "."): value for name, value in attributes.items()}
    return str(made(key, ATTRIBUTES | named)["service.instance.id"])


class TestInstanceId:
    def test_it_is_the_same_after_a_restart(self) -> None:
        for key in KEYS:
            assert instance_id(key) == instance_id(key)

    def test_it_is_this_very_one_for_ever(self) -> None:
        """A change here ends every series of every user."""
        assert instance_id(NODE) == "cb1f5412-719d-537a-ad96-1681ba4000a1"
        assert instance_id(KEYS[4]) == "806ea845-bb74-5c96-8341-1193c4879d39"

    def test_it_is_a_uuid_of_version_5(self) -> None:
        assert {uuid.UUID(instance_id(key)).version for key in KEYS} == {5}

    def test_it_is_another_for_each_resource(self) -> None:
        assert len({instance_id(key) for key in KEYS}) == len(KEYS)

    def test_it_is_another_on_another_node(self) -> None:
        for key in KEYS:
            assert instance_id(key) != instance_id(key, host_id="4567")
            assert instance_id(key) != instance_id(key, k8s_node_name="node-2")

    def test_the_hosts_name_serves_where_it_has_no_id(self) -> None:
        assert instance_id(NODE, host_id="") != instance_id(NODE, host_id="", host_name="node-2")

    def test_one_that_is_configured_is_the_nodes_and_the_others_are_derived_from_it(self) -> None:
        given = {"service.instance.id": "mine"}
        assert made(NODE, ATTRIBUTES | given)["service.instance.id"] == "mine"
        derived = [made(key, ATTRIBUTES | given)["service.instance.id"] for key in KEYS]
        assert len(set(derived)) == len(KEYS)
        assert derived[1] != instance_id(KEYS[1])

    def test_it_does_not_hang_on_the_order_of_an_owners_attributes(self) -> None:
        turned = Owner(tuple(reversed(POD.attributes)), POD.resource)
        assert instance_id(ResourceKey(GPU.uuid, turned)) == instance_id(ResourceKey(GPU.uuid, POD))


class TestResource:
    def test_the_node_has_no_gpu(self) -> None:
        assert made(NODE).keys() == ATTRIBUTES.keys() | {"service.instance.id"}

    def test_a_gpu_says_who_it_is(self) -> None:
        assert (
            made(ResourceKey(GPU.uuid)).items()
            >= {
                "host.name": "node-1",
                "hw.id": "GPU-0",
                "hw.name": "nvidia4",
                "hw.type": "gpu",
                "hw.vendor": "NVIDIA",
                "hw.model": "NVIDIA H200",
                "hw.serial_number": "165200",
                "hw.driver_version": "580.159.04",
                "hw.bios_version": "96.00.cf.00.01",
                "nvidia.gpu.pci.address": "0000:3b:00.0",
            }.items()
        )
        assert "hw.parent" not in made(ResourceKey(GPU.uuid))

    def test_an_instance_says_whose_part_it_is(self) -> None:
        assert made(ResourceKey(SLICE.uuid))["hw.parent"] == GPU.uuid

    def test_an_owner_is_there_with_what_only_the_resource_carries(self) -> None:
        found = made(ResourceKey(GPU.uuid, POD))
        assert found["k8s.pod.name"] == "train-0"
        assert found["k8s.pod.uid"] == "7f6c"
        assert found["hw.id"] == GPU.uuid

    def test_what_is_not_known_is_left_out(self) -> None:
        bare = replace(GPU, model="", serial="", bios_version="", driver_version="", minor=-1)
        assert gpu(bare).keys() == {
            "hw.id",
            "hw.type",
            "hw.vendor",
            "nvidia.gpu.pci.address",
        }

    def test_a_gpu_that_nobody_knows_is_the_node_with_another_id(self) -> None:
        found = made(ResourceKey("GPU-9"))
        assert "hw.id" not in found
        assert found["service.instance.id"] != made(NODE)["service.instance.id"]

    def test_it_says_which_conventions_it_keeps_to(self) -> None:
        resource = Resources(ATTRIBUTES, lambda: SNAPSHOT)(NODE)
        assert resource.schema_url == SCHEMA_URL
        assert SCHEMA_URL.startswith("https://opentelemetry.io/schemas/1.")

    def test_facts_of_a_later_snapshot_are_in_a_later_resource(self) -> None:
        snapshots = [SNAPSHOT, Snapshot(devices={GPU.uuid: replace(GPU, driver_version="595")})]
        resources = Resources(ATTRIBUTES, lambda: snapshots[-1])
        assert resources(ResourceKey(GPU.uuid)).attributes["hw.driver_version"] == "595"


class TestNode:
    def test_it_is_named_after_itself_and_its_version(self) -> None:
        found = node({}, {}, "1.2.3")
        assert (found["service.name"], found["service.version"]) == ("otel-gpu", "1.2.3")
        assert found["host.name"]
        assert "k8s.node.name" not in found

    @pytest.mark.parametrize(
        ("environ", "name"),
        [
            ({"K8S_NODE_NAME": "a"}, "a"),
            ({"NODE_NAME": "b"}, "b"),
            ({"K8S_NODE_NAME": "a", "NODE_NAME": "b"}, "a"),
            ({"K8S_NODE_NAME": "", "NODE_NAME": "b"}, "b"),
        ],
    )
    def test_kubernetes_names_the_node(self, environ: dict[str, str], name: str) -> None:
        assert node(environ, {}, "1")["k8s.node.name"] == name

    def test_what_is_configured_wins(self) -> None:
        found = node({"NODE_NAME": "b"}, {"k8s.node.name": "mine", "host.name": "h", "a": 1}, "1")
        assert (found["k8s.node.name"], found["host.name"], found["a"]) == ("mine", "h", 1)

    @pytest.mark.parametrize(
        ("machine", "arch"), [("x86_64", "amd64"), ("aarch64", "arm64"), ("ppc64le", "ppc64le")]
    )
    def test_the_processor_has_the_conventions_name(self, machine: str, arch: str) -> None:
        assert architecture(machine) == arch

    def test_the_hosts_id_is_the_first_machine_id_that_is_there(self, tmp_path: Path) -> None:
        gone, empty, broken, good = (
            tmp_path / name for name in ("gone", "empty", "broken", "good")
        )
        empty.write_text("\n", encoding="ascii")
        broken.write_bytes(b"\xff")
        good.write_text("0123\n", encoding="ascii")
        assert machine_id([gone, empty, broken, good]) == "0123"
        assert machine_id([gone, empty, broken]) == ""


def test_the_schema_url_is_one_that_the_conventions_know() -> None:
    schemas = pytest.importorskip("opentelemetry.semconv.schemas").Schemas
    known = {schema.value for schema in schemas}
    assert SCHEMA_URL in known or max(known) < SCHEMA_URL
