"""What several sources know put together, and the series that joins owners with their GPUs."""

from otel_gpu.attribution import Claims, Ownership, View, allocation, gathered
from otel_gpu.model import Owner, Point, Snapshot
from tests.machine import gpu

GPUS = [gpu(0), gpu(1)]
POD = Owner((("k8s.pod.name", "train-0"),))
JOB = Owner((("slurm.job.id", 17),))
BOX = Owner((("container.id", "c0ffee"),))


def test_owners_of_several_sources_stand_beside_each_other_in_their_order() -> None:
    claims = [Claims({"GPU-0": (POD,)}), Claims({"GPU-0": (JOB,), "GPU-1": (JOB,)})]
    assert gathered(claims, View(GPUS)) == Ownership(
        {"GPU-0": (POD, JOB), "GPU-1": (JOB,)}, {}, frozenset({"GPU-0"})
    )


def test_an_owner_whom_two_sources_know_is_one_owner() -> None:
    claims = [Claims({"GPU-0": (POD,)}), Claims({"GPU-0": (POD,)})]
    assert gathered(claims, View(GPUS)) == Ownership({"GPU-0": (POD,)}, {})


def test_nobody_owns_anything_without_a_source() -> None:
    assert gathered([], View(GPUS, {"GPU-0": (7,)})) == Ownership({}, {})


def test_a_gpu_that_was_given_to_nobody_is_the_owner_s_of_its_processes() -> None:
    holders = {("GPU-0", 7): BOX, ("GPU-0", 8): BOX}
    found = gathered([Claims({}, holders)], View(GPUS, {"GPU-0": (7, 8)}))
    assert found == Ownership({"GPU-0": (BOX,)}, holders)


def test_a_gpu_that_was_given_to_a_pod_is_the_pod_s_whoever_else_has_a_process_on_it() -> None:
    holders = {("GPU-0", 7): BOX}
    claims = [Claims({"GPU-0": (POD,)}), Claims({}, holders)]
    found = gathered(claims, View(GPUS, {"GPU-0": (7,)}))
    assert found == Ownership({"GPU-0": (POD,)}, holders)


def test_a_gpu_with_a_process_of_nobody_known_is_not_one_owner_s_alone() -> None:
    found = gathered([Claims({}, {("GPU-0", 7): BOX})], View(GPUS, {"GPU-0": (7, 8)}))
    assert found.owners == {"GPU-0": (BOX,)}
    assert found.shared == {"GPU-0"}


def test_a_gpu_whose_processes_are_all_nobody_s_is_nobody_s() -> None:
    found = gathered([Claims()], View(GPUS, {"GPU-0": (7, 8), "GPU-1": ()}))
    assert found == Ownership({}, {})


def test_processes_of_two_owners_share_a_gpu() -> None:
    holders = {("GPU-0", 8): JOB, ("GPU-0", 7): BOX, ("GPU-1", 7): BOX}
    found = gathered([Claims({}, holders)], View(GPUS, {"GPU-0": (7, 8), "GPU-1": (7,)}))
    assert found.owners == {"GPU-0": (BOX, JOB), "GPU-1": (BOX,)}
    assert found.shared == {"GPU-0"}


def test_of_a_process_that_several_sources_know_the_first_is_believed() -> None:
    claims = [Claims({}, {("GPU-0", 7): JOB}), Claims({}, {("GPU-0", 7): BOX})]
    assert gathered(claims, View(GPUS, {"GPU-0": (7,)})).owners == {"GPU-0": (JOB,)}


def test_an_allocation_is_a_point_of_1_for_each_owner_and_says_whether_it_is_shared() -> None:
    owners = {"GPU-0": (POD, JOB), "GPU-1": (JOB,)}
    snapshot = Snapshot(owners=owners, shared=frozenset({"GPU-0"}))
    assert list(allocation(snapshot)) == [
        ("GPU-0", Point(1, (("k8s.pod.name", "train-0"), ("nvidia.gpu.shared", True)))),
        ("GPU-0", Point(1, (("slurm.job.id", 17), ("nvidia.gpu.shared", True)))),
        ("GPU-1", Point(1, (("slurm.job.id", 17), ("nvidia.gpu.shared", False)))),
    ]
