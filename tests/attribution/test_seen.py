"""What a sweep saw, in the words of attribution."""

from otel_gpu.attribution import Ownership, View
from otel_gpu.attribution.seen import uses, view
from otel_gpu.attribution.workloads import Energy, Use
from otel_gpu.catalog.power import ENERGY
from otel_gpu.catalog.processes import PROCESS_MEMORY, PROCESS_UTILIZATION
from otel_gpu.model import Gap, Metric, Missing, Owner, Point, Reading, Reason
from tests.machine import gpu

GPU = gpu(0)
POD, OTHER = Owner((("k8s.pod.name", "train-0"),)), Owner((("k8s.pod.name", "train-1"),))


def reading(metric: Metric, *points: Point) -> Reading:
    return Reading(metric, "GPU-0", points, 1, 12.5)


def busy(pid: int, engine: str, part: float) -> Point:
    return Point(part, (("process.pid", pid), ("nvidia.gpu.engine", engine)))


def test_the_processes_of_each_gpu_are_shown_and_the_rest_of_them_is_none() -> None:
    points = [Point(1, (("process.pid", 7),)), Point(2, (("nvidia.gpu.process.type", "other"),))]
    assert view([GPU], [reading(PROCESS_MEMORY, *points)], []) == View([GPU], {"GPU-0": (7,)})


def test_why_no_process_can_be_seen_is_said() -> None:
    hidden = Missing(Reason.PID_NAMESPACE, "not the host's")
    refused = Missing(Reason.UNSUPPORTED, "no")
    gaps = [Gap(PROCESS_MEMORY.name, "GPU-0", refused), Gap(PROCESS_MEMORY.name, "GPU-1", hidden)]
    assert view([], [], gaps).blind == "not the host's"
    assert view([], [], gaps[:1]).blind == ""


def test_use_is_energy_owners_and_sm_time_by_owner() -> None:
    points = [busy(7, "sm", 0.25), busy(8, "sm", 0.25), busy(9, "sm", 0.125), busy(7, "dram", 1.0)]
    readings = [reading(ENERGY, Point(900.0, (), 5)), reading(PROCESS_UTILIZATION, *points)]
    holders = {("GPU-0", 7): POD, ("GPU-0", 8): POD}
    ownership = Ownership({"GPU-0": (POD, OTHER)}, holders, frozenset({"GPU-0"}))
    assert uses([GPU, gpu(1)], readings, ownership) == [
        Use(
            GPU,
            (POD, OTHER),
            shared=True,
            energy=Energy(900.0, 5, 12.5),
            busy={POD: 0.5, None: 0.125},
        ),
        Use(gpu(1)),
    ]
