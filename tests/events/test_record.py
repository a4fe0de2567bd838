"""What a record says of a GPU is what is known of it, and no more."""

from dataclasses import replace

from otel_gpu.events.record import called, holder, identity, known
from tests.events.box import FIRST, PART, SECOND, TRAIN, machine


def test_what_is_not_known_has_no_attribute() -> None:
    assert known(("a", None), ("b", ""), ("c", 0), ("d", "x")) == (("c", 0), ("d", "x"))


def test_a_gpu_without_a_device_file_or_an_address_is_its_uuid() -> None:
    bare = replace(FIRST, minor=-1, pci_address="")
    assert called(bare) == "GPU-0"
    assert dict(identity(bare)) == {"hw.id": "GPU-0", "hw.type": "gpu"}


def test_an_instance_names_its_gpu() -> None:
    assert dict(identity(PART))["hw.parent"] == SECOND.uuid


def test_a_sole_owner_is_named_with_what_only_its_resource_carries() -> None:
    assert holder(machine(), FIRST.uuid) == TRAIN.attributes + TRAIN.resource
    assert holder(machine(), SECOND.uuid) == ()
    assert holder(machine(), "GPU-9") == ()
