"""Which pod holds which GPU, by which of its containers."""

from collections.abc import Sequence

from otel_gpu.attribution.kubernetes.given import Given, Held, given
from otel_gpu.attribution.kubernetes.resources import Claimed, Container, Pod
from otel_gpu.model import Device
from tests.machine import gpu, instance

GPUS = (gpu(0), gpu(1), instance(gpu(1), 3))
ON_GPU_0 = (("nvidia.com/gpu", ("GPU-0",)),)


def pod(name: str, *containers: Container) -> Pod:
    return Pod("research", name, containers)


def found(
    *pods: Pod, names: Sequence[str] = (), claimed: Sequence[Device] = ()
) -> dict[str, tuple[Held, ...]]:
    return given(pods, GPUS, names, lambda _: claimed).held


def held(name: str, *containers: str) -> Held:
    return Held(("research", name), containers)


def test_a_container_holds_every_gpu_that_it_was_given() -> None:
    train = pod("train-0", Container("main", (("nvidia.com/gpu", ("GPU-0", "GPU-1")),)))
    assert found(train) == {
        "GPU-0": (held("train-0", "main"),),
        "GPU-1": (held("train-0", "main"),),
    }


def test_containers_of_a_pod_that_hold_one_gpu_are_one_holder() -> None:
    train = pod("train-0", Container("init", ON_GPU_0), Container("main", ON_GPU_0))
    assert found(train) == {"GPU-0": (held("train-0", "init", "main"),)}


def test_pods_that_hold_replicas_of_one_gpu_are_several_holders() -> None:
    pods = [
        pod(f"infer-{n}", Container("main", (("nvidia.com/gpu", (f"GPU-0::{n}",)),)))
        for n in range(3)
    ]
    assert found(*pods) == {"GPU-0": tuple(held(f"infer-{n}", "main") for n in range(3))}


def test_a_pod_that_holds_two_replicas_of_one_gpu_is_one_holder() -> None:
    both = (("nvidia.com/gpu", ("GPU-0::0", "GPU-0::1")),)
    assert found(pod("infer-0", Container("main", both))) == {"GPU-0": (held("infer-0", "main"),)}


def test_shared_and_mig_resources_are_known_and_others_are_not() -> None:
    train = pod(
        "train-0",
        Container("shared", (("nvidia.com/gpu.shared", ("GPU-0::0",)),)),
        Container("slice", (("nvidia.com/mig-1g.18gb", ("MIG-1-3",)),)),
        Container("nic", (("nvidia.com/hostdev", ("GPU-1",)), ("amd.com/gpu", ("GPU-1",)))),
    )
    assert found(train).keys() == {"GPU-0", "MIG-1-3"}


def test_a_resource_of_another_name_is_known_when_it_is_configured() -> None:
    train = pod("train-0", Container("main", (("acme.example/h200-large", ("GPU-0",)),)))
    assert found(train) == {}
    assert found(train, names=["acme.example/h200-*"]).keys() == {"GPU-0"}


def test_a_claimed_device_is_held_like_another() -> None:
    claims = (Claimed("gpu.nvidia.com", "node-1", "gpu-0"),)
    infer = pod("infer-0", Container("main", claimed=claims))
    assert found(infer, claimed=[GPUS[1]]) == {"GPU-1": (held("infer-0", "main"),)}


def test_what_no_gpu_is_known_for_is_named() -> None:
    claims = (Claimed("gpu.nvidia.com", "node-1", "gpu-9"),)
    lost = pod("lost", Container("main", (("nvidia.com/gpu", ("GPU-9",)),), claims))
    assert given([lost], GPUS, (), lambda _: ()) == Given({}, ("GPU-9", "node-1/gpu-9"))
