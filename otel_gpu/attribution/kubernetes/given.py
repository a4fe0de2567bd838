"""What the kubelet gave to whom, by GPU. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from otel_gpu.attribution.kubernetes.ids import meant
from otel_gpu.attribution.kubernetes.resources import Claimed, Container, Pod
from otel_gpu.model import Device

RESOURCES = ("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*")
"""Names under which NVIDIA's device plugin gives GPUs, if it was not told others."""

Resolve = Callable[[Claimed], Sequence[Device]]
"""Which GPU a claimed device is."""


class Held(NamedTuple):
    """A pod that holds a GPU, by which of its containers."""

    pod: tuple[str, str]  # namespace and name
    containers: tuple[str, ...]


class Given(NamedTuple):
    """Who holds each GPU or instance, by UUID; and what no GPU was found for."""

    held: dict[str, tuple[Held, ...]]
    unknown: tuple[str, ...]


def given(
    pods: Iterable[Pod], devices: Sequence[Device], names: Sequence[str], resolve: Resolve
) -> Given:
    """Find the GPU of each device id and each claimed device.

    `names` are globs of resources that are GPUs, beside `RESOURCES`. Containers of one pod that
    hold the same GPU, as an init container and its successors do, are one holder.
    """
    found: dict[str, dict[tuple[str, str], dict[str, None]]] = {}
    unknown: dict[str, None] = {}
    for pod in pods:
        for container in pod.containers:
            for what, meaning in _meanings(container, devices, (*RESOURCES, *names), resolve):
                if not meaning:
                    unknown[what] = None
                for device in meaning:
                    holders = found.setdefault(device.uuid, {})
                    holders.setdefault(pod.key, {})[container.name] = None
    return Given(
        {
            uuid: tuple(Held(key, tuple(containers)) for key, containers in holders.items())
            for uuid, holders in found.items()
        },
        tuple(unknown),
    )


def _meanings(
    container: Container, devices: Sequence[Device], names: Sequence[str], resolve: Resolve
) -> Iterator[tuple[str, Sequence[Device]]]:
    for resource, device_ids in container.devices:
        if any(fnmatchcase(resource, name) for name in names):
            for device_id in device_ids:
                yield device_id, meant(device_id, devices)
    for claimed in container.claimed:
        yield f"{claimed.pool}/{claimed.device}", resolve(claimed)
