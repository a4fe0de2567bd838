"""Which sources a configuration asks for; after a reload, those that stay the same go on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path

from otel_gpu.attribution.container import ContainerSource
from otel_gpu.attribution.patient import Patient
from otel_gpu.attribution.slurm import SlurmSource
from otel_gpu.attribution.static import StaticSource
from otel_gpu.config import Attribution, Settings
from otel_gpu.model import AttributeValue

REAL = "nvml"

Wanted = tuple[Hashable, Callable[[], Sequence[Patient]]]
"""What tells a group of sources from every other, and how it is made."""


def chosen(
    settings: Settings,
    environ: Mapping[str, str],
    node: Mapping[str, AttributeValue],
    before: Sequence[Patient] = (),
) -> tuple[Patient, ...]:
    """Give the sources that are configured; those of `before` that are not any more are closed.

    `node` are the attributes of its Resource, of which the API is asked for its pods by name.
    """
    found: list[Patient] = []
    for spec, make in _wanted(settings, environ, f"{node.get('k8s.node.name', '')}"):
        kept = [source for source in before if source.spec == spec]
        made = kept or make()
        for source in made:
            source.spec = spec
        found += made
    for source in before:
        if source not in found:
            source.close()
    return tuple(found)


def looks_at_processes(settings: Settings) -> bool:
    """Whether a source may ask whose the processes on a GPU are."""
    asked = settings.attribution
    return any(
        _wants(switch, settings) for switch in (asked.kubernetes, asked.slurm, asked.container)
    )


def _wants(switch: str, settings: Settings) -> bool:
    """Whether a switch is on; `auto` is where GPUs, and so the processes on them, are real."""
    return switch == "on" or (switch == "auto" and settings.backend == REAL)


def _wanted(settings: Settings, environ: Mapping[str, str], node: str) -> Iterator[Wanted]:
    asked = settings.attribution
    if asked.static:
        path = asked.static
        yield ("static", path), lambda: [Patient(StaticSource(path))]
    if on_node := _on_node(settings, environ):
        spec = (
            asked.pod_resources_socket,
            asked.resource_names,
            asked.pod_labels,
            asked.pod_owners,
            node,
        )
        yield ("kubernetes", *spec), lambda: _kubernetes(asked, environ, node)
    if _wants(asked.slurm, settings) or (asked.slurm == "auto" and asked.job_mapping_dir):
        directory, insists = asked.job_mapping_dir, asked.slurm == "on"
        yield (
            ("slurm", directory, insists),
            lambda: [Patient(SlurmSource(directory, insists=insists))],
        )
    if _wants(asked.container, settings):
        alone, insisting = not on_node, asked.container == "on"
        yield (
            ("container", alone, insisting),
            lambda: [Patient(ContainerSource(insists=insisting, pods=alone))],
        )


def _on_node(settings: Settings, environ: Mapping[str, str]) -> bool:
    """Whether the kubelet is to be asked: `auto` is in a pod, or beside a kubelet."""
    asked = settings.attribution
    if not _wants(asked.kubernetes, settings):
        return False
    beside = asked.pod_resources_socket.parent.exists()
    return asked.kubernetes == "on" or "KUBERNETES_SERVICE_HOST" in environ or beside


def _kubernetes(asked: Attribution, environ: Mapping[str, str], node: str) -> Sequence[Patient]:
    # They load gRPC, which a machine without Kubernetes can do without.
    from otel_gpu.attribution.kubernetes.api import in_cluster  # noqa: PLC0415
    from otel_gpu.attribution.kubernetes.kubelet import Kubelet  # noqa: PLC0415
    from otel_gpu.attribution.kubernetes.pods import Allowed, Pods  # noqa: PLC0415
    from otel_gpu.attribution.kubernetes.source import Besides, KubernetesSource  # noqa: PLC0415

    api = in_cluster(environ)
    allowed = Allowed(asked.pod_labels, asked.pod_owners)
    pods = Pods(in_cluster(environ), node, allowed) if any(allowed) else None
    besides = Besides(pods=pods, api=api, node=node)
    kubelet = Kubelet(Path(asked.pod_resources_socket))
    source = KubernetesSource(kubelet, asked.resource_names, besides)
    return [*([Patient(pods)] if pods else []), Patient(source)]
