"""A kubelet for tests: a real gRPC server of PodResources v1 on a Unix socket, told what to say.

It speaks the wire format through descriptors of its own, which have every field of the official
API, not through the reduced table under test.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]  # noqa: TID251 - this end speaks gRPC too; no types

LIST, GET = "/v1.PodResourcesLister/List", "/v1.PodResourcesLister/Get"


def pod(name: str, *containers: bytes, namespace: str = "research") -> bytes:
    """Encode a v1.PodResources."""
    return text(1, name) + text(2, namespace) + b"".join(part(3, one) for one in containers)


def container(
    name: str, *ids: str, resource: str = "nvidia.com/gpu", claims: Sequence[bytes] = ()
) -> bytes:
    """Encode a v1.ContainerResources, with processors and memory as real ones have them."""
    given = text(1, resource) + b"".join(text(2, one) for one in ids)
    topology = part(3, part(1, number(1, 1)))
    processors = part(3, b"\x00\x01\x02")
    memory = part(4, text(1, "memory") + number(2, 1 << 30))
    devices = part(2, given + topology) if ids else b""
    return text(1, name) + devices + processors + memory + b"".join(part(5, one) for one in claims)


def claim(name: str, *devices: tuple[str, str], driver: str = "gpu.nvidia.com") -> bytes:
    """Encode a v1.DynamicResource of devices by pool and name."""
    given = (
        part(1, text(1, f"k8s.{driver}/claim={device}"))
        + text(2, driver)
        + text(3, pool)
        + text(4, device)
        for pool, device in devices
    )
    return text(2, name) + text(3, "research") + b"".join(part(4, one) for one in given)


def listed(*pods: bytes) -> bytes:
    """Encode a v1.ListPodResourcesResponse."""
    return b"".join(part(1, one) for one in pods)


def text(number_: int, value: str) -> bytes:
    return part(number_, value.encode())


def part(number_: int, value: bytes) -> bytes:
    return varint(number_ << 3 | 2) + varint(len(value)) + value


def number(number_: int, value: int) -> bytes:
    return varint(number_ << 3) + varint(value)


def varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


@dataclass
class Node:
    """What the kubelet says: encoded pods by (namespace, name), or a status, or nothing for long.

    `asked` counts the questions; while `hangs` is set, none is answered.
    """

    path: Path
    pods: dict[tuple[str, str], bytes] = field(default_factory=dict)
    got: dict[tuple[str, str], bytes] | None = None  # what Get says, where it is not the same
    status: Any = None
    raw: bytes | None = None  # said instead of pods
    asked: list[str] = field(default_factory=list)
    hangs: threading.Event = field(default_factory=threading.Event)
    _released: threading.Event = field(default_factory=threading.Event)
    _server: Any = None

    def give(self, name: str, *containers: bytes, namespace: str = "research") -> None:
        """Let a pod have what its containers say."""
        self.pods[namespace, name] = pod(name, *containers, namespace=namespace)

    def serve(self) -> None:
        """Listen on the socket."""
        self._released.clear()
        handlers = {
            "List": grpc.unary_unary_rpc_method_handler(self._list),
            "Get": grpc.unary_unary_rpc_method_handler(self._get),
        }
        service = grpc.method_handlers_generic_handler("v1.PodResourcesLister", handlers)
        options = (("grpc.max_send_message_length", -1),)
        self._server = grpc.server(ThreadPoolExecutor(8), handlers=[service], options=options)
        self._server.add_insecure_port(f"unix:{self.path}")
        self._server.start()

    def die(self) -> None:
        """Stop listening; the socket's file goes away."""
        self._released.set()
        if self._server:
            self._server.stop(None).wait()
        self.path.unlink(missing_ok=True)

    def _list(self, _request: bytes, context: Any) -> bytes:
        self._answer("List", context)
        return listed(*self.pods.values()) if self.raw is None else self.raw

    def _get(self, request: bytes, context: Any) -> bytes:
        self._answer("Get", context)
        source = self.pods if self.got is None else self.got
        for (namespace, name), encoded in source.items():
            if request == text(1, name) + text(2, namespace):
                return part(1, encoded)
        context.abort(grpc.StatusCode.NOT_FOUND, "pod not found")
        raise AssertionError

    def _answer(self, method: str, context: Any) -> None:
        self.asked.append(method)
        if self.hangs.is_set():
            self._released.wait(60)
        if self.status:
            context.abort(self.status, "as the test says")


Serving = Callable[[], Node]
