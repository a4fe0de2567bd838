"""Which sources a configuration asks for, and which of them a reload keeps."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from otel_gpu.attribution.choosing import chosen, looks_at_processes
from otel_gpu.attribution.patient import Patient
from otel_gpu.config import Settings, load

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
NODE = {"k8s.node.name": "node-1"}


def settings(backend: str = "nvml", **attribution: Any) -> Settings:
    flags = {f"attribution.{key}": value for key, value in attribution.items()}
    return load(None, {}, {"backend": backend, **flags}).settings


def names(
    asked: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    backend: str = "nvml",
) -> list[str]:
    found = chosen(settings(backend, **(asked or {})), environ or {}, NODE)
    return [source.health().name for source in found]


def test_by_itself_it_looks_at_the_processes_on_real_gpus() -> None:
    assert names() == ["slurm", "container"]
    assert names(backend="simulated") == []
    assert looks_at_processes(settings())
    assert not looks_at_processes(settings("simulated"))


def test_in_a_pod_or_beside_a_kubelet_it_asks_the_kubelet(tmp_path: Path) -> None:
    assert names(environ=POD) == ["kubernetes", "slurm", "container"]
    beside = {"pod_resources_socket": str(tmp_path / "kubelet.sock")}
    assert names(beside)[0] == "kubernetes"


@pytest.mark.parametrize("source", ["kubernetes", "slurm", "container"])
def test_a_source_that_is_asked_for_is_there_and_one_that_is_off_is_not(source: str) -> None:
    assert source in names({source: "on"}, backend="simulated")
    assert source not in names({source: "off"}, POD)
    assert looks_at_processes(settings("simulated", **{source: "on"}))


def test_a_file_and_a_directory_are_sources_wherever_the_gpus_come_from(tmp_path: Path) -> None:
    jobs = {"job_mapping_dir": str(tmp_path)}
    assert names({"static": str(tmp_path / "owners.yaml")}, backend="simulated") == ["static"]
    assert names(jobs, backend="simulated") == ["slurm"]
    assert names({**jobs, "slurm": "off"}, backend="simulated") == []


@pytest.mark.parametrize("key", ["pod_labels", "pod_owners"])
def test_the_api_is_followed_only_for_what_it_alone_knows(key: str) -> None:
    assert names({key: ["job"]}, POD)[:2] == ["kubernetes_api", "kubernetes"]
    assert "kubernetes_api" not in names({key: ["job"], "kubernetes": "off"}, POD)


def test_what_stays_the_same_goes_on_and_what_does_not_is_closed(tmp_path: Path) -> None:
    before = chosen(settings(static=str(tmp_path / "a.yaml")), {}, NODE)
    after = chosen(settings(static=str(tmp_path / "b.yaml")), {}, NODE, before)
    assert [source.health().name for source in after] == ["static", "slurm", "container"]
    assert after[0] is not before[0]
    assert after[1:] == before[1:]
    assert [closed(source) for source in before] == [True, False, False]


def test_a_node_of_another_name_has_other_pods() -> None:
    asked = settings(pod_owners=["job"])
    before = chosen(asked, POD, NODE)
    after = chosen(asked, POD, {"k8s.node.name": "node-2"}, before)
    assert [closed(source) for source in before] == [True, True, False, False]
    assert after[2:] == before[2:]


def test_a_container_of_kubernetes_is_a_container_where_the_kubelet_is_not_asked() -> None:
    (_, _, with_pods) = chosen(settings(), POD, NODE)
    (_, alone) = chosen(settings(), {}, NODE)
    assert with_pods.spec != alone.spec


def closed(source: Patient) -> bool:
    return source.closed
