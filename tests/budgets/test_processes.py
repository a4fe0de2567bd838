"""Processes of a GPU: the largest have series of their own, and nothing is lost from a sum."""

from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.budgets.processes import cut, largest, within
from otel_gpu.catalog.processes import PROCESS_MEMORY, PROCESS_UTILIZATION, REST
from otel_gpu.model import Point, Reading
from tests.budgets.box import (
    GPUS,
    USES,
    Collecting,
    Uses,
    memory,
    pid,
    pids,
    published,
    utilization,
)

MEMORY, UTILIZATION = PROCESS_MEMORY.name, PROCESS_UTILIZATION.name


def named(reading: Reading) -> list[int]:
    return [dict(point.attributes)["process.pid"] for point in reading.points if _is_one(point)]  # type: ignore[misc]


def _is_one(point: Point) -> bool:
    return point.attributes != REST


def uses(**sizes: int) -> Uses:
    return {("GPU-0", int(number.removeprefix("p"))): size for number, size in sizes.items()}


def test_the_largest_are_kept_and_the_rest_is_one_point() -> None:
    (found,), gone = largest([memory(uses(p7=70, p8=80, p9=90))], 1)
    assert found.points == (Point(90, pid(9)), Point(150, REST))
    assert gone == 2


def test_of_equals_the_lowest_pid_is_kept_whatever_their_order() -> None:
    for order in (uses(p7=70, p8=70, p9=70), uses(p9=70, p8=70, p7=70)):
        (found,), _ = largest([memory(order)], 2)
        assert sorted(named(found)) == [7, 8]


def test_utilization_is_told_of_the_same_processes_as_memory() -> None:
    busy, large = uses(p7=900, p8=1), uses(p7=10, p8=20)
    for readings in ([memory(large), utilization(busy)], [utilization(busy), memory(large)]):
        found, gone = largest(readings, 1)
        assert {number for reading in found for number in named(reading)} == {8}
        assert gone == 1 + 2


def test_one_whose_memory_is_not_known_comes_after_those_whose_is() -> None:
    found, _ = largest([memory(uses(p8=0)), utilization(uses(p7=900, p8=1))], 1)
    assert {number for reading in found for number in named(reading)} == {8}


def test_where_no_memory_is_known_the_busiest_are_kept_and_there_is_no_rest() -> None:
    (found,), gone = largest([utilization(uses(p7=10, p8=30, p9=20))], 2)
    assert set(named(found)) == {8, 9}
    assert gone == 2


def test_each_gpu_has_its_own() -> None:
    both = {**uses(p7=70, p8=80), ("GPU-1", 7): 9, ("GPU-1", 8): 8}
    found, _ = largest([memory(both, "GPU-0"), memory(both, "GPU-1")], 1)
    assert [named(reading) for reading in found] == [[8], [7]]


def test_a_budget_of_0_leaves_the_sum() -> None:
    (found,), gone = largest([memory(uses(p7=70, p8=80))], 0)
    assert (found.points, gone) == ((Point(150, REST),), 2)


def test_a_second_cut_adds_to_the_rest_of_the_first() -> None:
    once, _ = largest([memory(uses(p7=70, p8=80, p9=90))], 2)
    (twice,), gone = cut(once, lambda process: process[1] == 9)
    assert (twice.points, gone) == ((Point(90, pid(9)), Point(150, REST)), 1)


@given(USES, st.integers(0, 30))
def test_no_gpu_has_more_processes_than_it_may_and_the_sums_are_those_of_all(
    sizes: Uses, most: int
) -> None:
    collecting = Collecting(published(sizes), processes_per_gpu=most)
    seen = collecting.seen()
    for name in (MEMORY, UTILIZATION):
        of_each = [uuid for uuid, _ in pids(seen[name])]
        assert all(of_each.count(uuid) == min(most, _count(sizes, uuid)) for uuid in GPUS)
    for uuid in GPUS:
        points = {key: value for key, value in seen[MEMORY].items() if ("hw.id", uuid) in key}
        assert sum(points.values()) == sum(size for (gpu, _), size in sizes.items() if gpu == uuid)
    gone = sum(max(0, _count(sizes, uuid) - most) for uuid in GPUS)
    assert collecting.dropped == {"series": 0, "processes_per_gpu": 3 * gone}


@given(USES)
def test_within_the_budget_nothing_is_changed(sizes: Uses) -> None:
    readings = [memory(sizes, uuid) for uuid in GPUS if _count(sizes, uuid)]
    assert largest(readings, 60) == (readings, 0)


@given(USES, st.integers(0, 30), st.randoms())
def test_the_order_of_the_drivers_lists_does_not_matter(
    sizes: Uses, most: int, random: object
) -> None:
    items = list(sizes.items())
    random.shuffle(items)  # type: ignore[attr-defined]
    kept = [
        pids(Collecting(published(one), processes_per_gpu=most).seen()[MEMORY])
        for one in (sizes, dict(items))
    ]
    assert kept[0] == kept[1]


@given(USES, st.integers(0, 200))
def test_no_more_points_than_there_is_room_for_and_processes_are_whole(
    sizes: Uses, room: int
) -> None:
    readings = [make(sizes, uuid) for uuid in GPUS for make in (memory, utilization)]
    found, gone = within(readings, room)
    assert sum(len(reading.points) for reading in found) <= room
    kept = [
        {(one.device, number) for one in found if one.metric.name == name for number in named(one)}
        for name in (MEMORY, UTILIZATION)
    ]
    assert kept[0] == kept[1]
    assert gone == 3 * (len(sizes) - len(kept[0]))


def _count(sizes: Uses, uuid: str) -> int:
    return sum(gpu == uuid for gpu, _ in sizes)
