"""The messages of the kubelet's PodResources API v1 that are read, as far as they are read.

The table is our own minimal proto of that public API (kubernetes/kubelet,
pkg/apis/podresources/v1): what it leaves out, a parser skips. The classes are made when this is
imported: generated code is bound to one major version of protobuf, and we run with several. They
live in a pool of their own, so that an application that has the official ones may load this too.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

PACKAGE = "v1"
LIST = "/v1.PodResourcesLister/List"
GET = "/v1.PodResourcesLister/Get"

ONE = FieldDescriptorProto.LABEL_OPTIONAL
MANY = FieldDescriptorProto.LABEL_REPEATED

MESSAGES: dict[str, tuple[tuple[str, int, int, str], ...]] = {
    "ListPodResourcesRequest": (),
    "ListPodResourcesResponse": (("pod_resources", 1, MANY, "PodResources"),),
    "GetPodResourcesRequest": (
        ("pod_name", 1, ONE, "string"),
        ("pod_namespace", 2, ONE, "string"),
    ),
    "GetPodResourcesResponse": (("pod_resources", 1, ONE, "PodResources"),),
    "PodResources": (
        ("name", 1, ONE, "string"),
        ("namespace", 2, ONE, "string"),
        ("containers", 3, MANY, "ContainerResources"),
    ),
    "ContainerResources": (
        ("name", 1, ONE, "string"),
        ("devices", 2, MANY, "ContainerDevices"),
        ("dynamic_resources", 5, MANY, "DynamicResource"),
    ),
    "ContainerDevices": (
        ("resource_name", 1, ONE, "string"),
        ("device_ids", 2, MANY, "string"),
    ),
    "DynamicResource": (
        ("claim_name", 2, ONE, "string"),
        ("claim_namespace", 3, ONE, "string"),
        ("claim_resources", 4, MANY, "ClaimResource"),
    ),
    "ClaimResource": (
        ("driver_name", 2, ONE, "string"),
        ("pool_name", 3, ONE, "string"),
        ("device_name", 4, ONE, "string"),
    ),
}
"""Each message's fields: name, number, how many, and type or message."""


def _classes() -> dict[str, Any]:
    file = FileDescriptorProto(name="podresources.proto", package=PACKAGE, syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, label, kind in fields:
            made = message.field.add(name=field, number=number, label=label)
            if kind == "string":
                made.type = FieldDescriptorProto.TYPE_STRING
            else:
                made.type = FieldDescriptorProto.TYPE_MESSAGE
                made.type_name = f".{PACKAGE}.{kind}"
    pool = DescriptorPool()
    pool.Add(file)
    return {
        name: GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in MESSAGES
    }


_CLASSES = _classes()

ListRequest: Any = _CLASSES["ListPodResourcesRequest"]
ListResponse: Any = _CLASSES["ListPodResourcesResponse"]
GetRequest: Any = _CLASSES["GetPodResourcesRequest"]
GetResponse: Any = _CLASSES["GetPodResourcesResponse"]
