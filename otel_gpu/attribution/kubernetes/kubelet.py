"""The kubelet's PodResources API v1, over gRPC on its Unix socket.

Source: kubernetes.io, "Monitoring device plugin resources"; PodResourcesLister.List and .Get.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]  # noqa: TID251 - the kubelet speaks it; no types

from otel_gpu.attribution.kubernetes.messages import (
    GET,
    LIST,
    GetRequest,
    GetResponse,
    ListRequest,
    ListResponse,
)
from otel_gpu.attribution.kubernetes.resources import Pod, pod
from otel_gpu.model import OtelGpuError

TIMEOUT_S = 10.0
MOST_BYTES = 64 << 20  # gRPC's own 4 MiB are too few for a large node
OPTIONS = (
    ("grpc.max_receive_message_length", MOST_BYTES),
    ("grpc.enable_http_proxy", 0),
    # A kubelet that restarts is found again within seconds; gRPC's own is two minutes.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2000),
)
REASONS = {
    grpc.StatusCode.DEADLINE_EXCEEDED: "timeout",
    grpc.StatusCode.UNIMPLEMENTED: "unimplemented",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "limited",
    grpc.StatusCode.PERMISSION_DENIED: "permission",
    grpc.StatusCode.UNAVAILABLE: "unavailable",
}


class KubeletError(OtelGpuError):
    """The kubelet could not be asked: why in one word, and in one sentence with what to do."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


class Kubelet:
    """Asks over one connection, which is made anew after the kubelet was away."""

    def __init__(self, path: Path, timeout_s: float = TIMEOUT_S) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._channel: Any = None

    def pods(self) -> Sequence[Pod]:
        """List the pods that were given something. Raises KubeletError."""
        answer = self._ask(LIST, ListRequest(), ListResponse)
        return [pod(one) for one in answer.pod_resources]

    def pod(self, namespace: str, name: str) -> Pod:
        """Give one pod; it is not cached by the kubelet. Raises KubeletError."""
        request = GetRequest(pod_namespace=namespace, pod_name=name)
        return pod(self._ask(GET, request, GetResponse).pod_resources)

    def close(self) -> None:
        """Close the connection; the next question opens another."""
        channel, self._channel = self._channel, None
        if channel:
            channel.close()

    def _ask(self, method: str, request: Any, response: Any) -> Any:
        _demand_socket(self._path)
        if self._channel is None:
            self._channel = grpc.insecure_channel(f"unix:{self._path.absolute()}", OPTIONS)
        call = self._channel.unary_unary(
            method,
            request_serializer=type(request).SerializeToString,
            response_deserializer=response.FromString,
        )
        try:
            return call(request, timeout=self._timeout_s)
        except grpc.RpcError as error:
            raise self._translated(error) from error

    def _translated(self, error: Any) -> KubeletError:
        code, said = error.code(), " ".join((error.details() or "").split())
        if code is grpc.StatusCode.UNAVAILABLE:
            self.close()  # so that the next question does not wait for gRPC's own patience
            _demand_answer(self._path)
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            said = f"no answer within {self._timeout_s:g} s"
        if code is grpc.StatusCode.UNIMPLEMENTED:
            said = "it does not know PodResources v1, which Kubernetes has from 1.20 on"
        reason = REASONS.get(code, "error")
        return KubeletError(reason, f"the kubelet at {self._path}: {said or code.name}")


def _demand_socket(path: Path) -> None:
    """Raise KubeletError where there is no socket to be seen: gRPC would only say unavailable."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        advice = "mount the kubelet's pod-resources directory, or set pod_resources_socket"
        raise KubeletError("no_socket", f"{path} does not exist; {advice}") from None
    except OSError as error:
        raise _refused(path, error) from error
    if not stat.S_ISSOCK(mode):
        raise KubeletError("no_socket", f"{path} is not a socket")


def _demand_answer(path: Path) -> None:
    """Raise KubeletError where a connection fails, with the reason that gRPC does not tell."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(os.fspath(path))
        except OSError as error:
            raise _refused(path, error) from error


def _refused(path: Path, error: OSError) -> KubeletError:
    if error.errno in {errno.EACCES, errno.EPERM}:
        advice = "it is root's: run as root, or as a user who may read its directory"
        return KubeletError("permission", f"{path}: permission denied; {advice}")
    if error.errno == errno.ECONNREFUSED:
        return KubeletError("unavailable", f"{path}: nobody listens; is the kubelet running?")
    return KubeletError("unavailable", f"{path}: {error.strerror or error}")
