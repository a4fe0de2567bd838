"""The Resources: the node, each GPU on it, and each GPU while somebody holds it.

Each has its own stable `service.instance.id`, because backends that turn a Resource into
`target_info` need one target per Resource, and an agent that restarts must find its series again.
"""

from __future__ import annotations

import platform
import socket
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from opentelemetry.sdk.resources import Resource

from otel_gpu.model import NODE, AttributeValue, Device, ResourceKey, Snapshot

NAMESPACE = uuid.UUID("4d63009a-8d0f-11ee-aad7-4c796ed8e320")  # semconv, service.instance.id
MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
NODE_NAMES = ("K8S_NODE_NAME", "NODE_NAME")
SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"  # whose names the catalog follows


def node(
    environ: Mapping[str, str], configured: Mapping[str, AttributeValue], version: str
) -> dict[str, AttributeValue]:
    """Describe the node: what is found on it, then what is configured, which wins."""
    attributes: dict[str, AttributeValue] = {
        "service.name": "otel-gpu",
        "service.version": version,
        "telemetry.sdk.name": "opentelemetry",
        "telemetry.sdk.language": "python",
        "host.name": socket.gethostname(),
        "host.arch": architecture(platform.machine()),
    }
    if host_id := machine_id():
        attributes["host.id"] = host_id
    if name := next((environ[key] for key in NODE_NAMES if environ.get(key)), ""):
        attributes["k8s.node.name"] = name
    return attributes | dict(configured)


def architecture(machine: str) -> str:
    """Name the processor as the `host.arch` convention does."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def machine_id(paths: Iterable[Path] = MACHINE_IDS) -> str:
    """Give the host's id, which the convention takes from machine-id; "" where there is none."""
    for path in paths:
        try:
            if text := path.read_text(encoding="ascii").strip():
                return text
        except (OSError, UnicodeError):
            continue
    return ""


def gpu(device: Device) -> dict[str, AttributeValue]:
    """Describe a GPU or a MIG instance; what is not known is left out."""
    facts: dict[str, AttributeValue] = {
        "hw.id": device.uuid,
        "hw.name": device.name,
        "hw.type": "gpu",
        "hw.vendor": "NVIDIA",
        "hw.model": device.model,
        "hw.serial_number": device.serial,
        "hw.driver_version": device.driver_version,
        "hw.bios_version": device.bios_version,
        "hw.parent": device.parent,
        "nvidia.gpu.pci.address": device.pci_address,
    }
    return {key: value for key, value in facts.items() if value != ""}


class Resources:
    """Makes the SDK Resource of a key, from the node and from the GPUs of the snapshot."""

    def __init__(
        self, attributes: Mapping[str, AttributeValue], snapshot: Callable[[], Snapshot]
    ) -> None:
        self._node = dict(attributes)
        self._snapshot = snapshot

    def __call__(self, key: ResourceKey) -> Resource:
        """Give the Resource of the node, of a GPU, or of a GPU and its owner."""
        attributes = dict(self._node)
        device = self._snapshot().devices.get(key.device)
        if device:
            attributes |= gpu(device)
        if key.owner:
            attributes |= dict(key.owner.attributes) | dict(key.owner.resource)
        attributes["service.instance.id"] = self._instance(key)
        return Resource(attributes, SCHEMA_URL)

    def _instance(self, key: ResourceKey) -> str:
        """Give an id that is the same after every restart: a UUID of node, GPU and owner.

        One that is configured is the node's; the others are derived from it.
        """
        configured = str(self._node.get("service.instance.id", ""))
        if configured and key == NODE:
            return configured
        parts = [str(self._node.get("host.id") or self._node.get("host.name"))]
        parts += [configured] if configured else []
        parts += [str(self._node.get("k8s.node.name", "")), key.device]
        if key.owner:
            parts += [f"{name}={value}" for name, value in sorted(key.owner.attributes)]
        return str(uuid.uuid5(NAMESPACE, "\n".join(parts)))
