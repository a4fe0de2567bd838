"""Processes: each once, the largest by name, the sum of all, and never a command line."""

from typing import Any

import pytest

from otel_gpu.catalog.processes import ENGINES, LISTS
from otel_gpu.ledger import Batch, Page, fold
from otel_gpu.model import Answer, Code, Query, Reason
from tests.catalog.world import HOPPER, NOW_NS, RECORDS, World, lacking, process, sample, told

MEMORY, ACTIVE, UTILIZATION = (
    "nvidia.gpu.process.memory.usage",
    "nvidia.gpu.process.active",
    "nvidia.gpu.process.utilization",
)
TYPE, PID, ENGINE = "nvidia.gpu.process.type", "process.pid", "nvidia.gpu.engine"
SAMPLES = Query("nvmlDeviceGetProcessesUtilizationInfo", (0,))
OLDER = Query("nvmlDeviceGetProcessUtilization", (0,))
NOBODY: World = {query: [] for query in LISTS.values()}


def running(**lists: list[dict[str, Any]]) -> World:
    """List processes by what they do."""
    return NOBODY | {LISTS[kind]: listed for kind, listed in lists.items()}


class TestMemory:
    def test_each_process_has_a_point_with_its_pid_its_name_and_what_it_does(self) -> None:
        world = running(compute=[process(7, 70, "trainer")], graphics=[process(8, 80, "Xorg")])
        assert told(MEMORY, world) == {
            ((PID, 7), ("process.executable.name", "trainer"), (TYPE, "compute")): 70,
            ((PID, 8), ("process.executable.name", "Xorg"), (TYPE, "graphics")): 80,
        }

    def test_one_that_is_gone_meanwhile_has_no_name(self) -> None:
        world = running(compute=[process(7, 70, "")])
        assert told(MEMORY, world) == {((PID, 7), (TYPE, "compute")): 70}

    def test_one_that_stands_in_several_lists_counts_once_in_the_first(self) -> None:
        world = running(
            compute=[process(7, 70)], graphics=[process(7, 70)], mps=[process(7, 70), process(9, 9)]
        )
        assert told(MEMORY, world) == {
            ((PID, 7), (TYPE, "compute")): 70,
            ((PID, 9), (TYPE, "mps")): 9,
        }

    def test_nobody_is_no_point_and_no_gap(self) -> None:
        assert told(MEMORY, NOBODY) == {}
        assert lacking(MEMORY, NOBODY) == []

    def test_whose_memory_the_driver_does_not_know_is_left_out(self) -> None:
        world = running(compute=[process(7, None), process(8, 80), process(9, 2**64 - 1)])
        assert told(MEMORY, world) == {((PID, 8), (TYPE, "compute")): 80}

    def test_where_it_knows_of_none_it_is_a_gap(self) -> None:
        world = running(compute=[process(7, None)])
        assert told(MEMORY, world) == {}
        assert [gap.reason for gap in lacking(MEMORY, world)] == [Reason.UNSUPPORTED]

    def test_the_largest_comes_first(self) -> None:
        world = running(compute=[process(7, 70), process(8, 90)], graphics=[process(9, 80)])
        assert [*told(MEMORY, world).values()] == [90, 80, 70]

    def test_nothing_else_of_a_process_is_told(self) -> None:
        listed = process(7, 70, "trainer") | {"cmdline": "--token=hunter2", "user": "ada"}
        for name in (MEMORY, ACTIVE):
            assert "hunter2" not in str(told(name, running(compute=[listed])))
            assert "ada" not in str(told(name, running(compute=[listed])))


class TestActive:
    def test_processes_are_counted_by_what_they_do_from_0(self) -> None:
        assert told(ACTIVE, NOBODY) == {((TYPE, kind),): 0 for kind in LISTS}
        world = running(compute=[process(7, 1), process(8, 1)], mps=[process(8, 1)])
        assert told(ACTIVE, world) == {
            ((TYPE, "compute"),): 2,
            ((TYPE, "graphics"),): 0,
            ((TYPE, "mps"),): 0,
        }

    @pytest.mark.parametrize("name", [MEMORY, ACTIVE])
    def test_in_a_namespace_of_pids_of_its_own_there_is_a_gap_and_no_0(self, name: str) -> None:
        heard = {query: Answer(Code.PID_NAMESPACE) for query in LISTS.values()}
        page = fold(Page(), Batch(HOPPER, NOW_NS, 1.0, heard), [RECORDS[name]], 15.0)
        assert page.readings == {}
        assert [gap.missing.reason for gap in page.gaps[name]] == [Reason.PID_NAMESPACE]
        assert page.refused == {}, "the next agent may be elsewhere"

    @pytest.mark.parametrize("name", [MEMORY, ACTIVE])
    @pytest.mark.parametrize("value", [None, 5, [{}], [None], [{"pid": "7"}], [{"pid": None}]])
    def test_what_is_no_list_of_processes_is_a_gap(self, name: str, value: object) -> None:
        world = NOBODY | {LISTS["compute"]: value}
        assert told(name, world) == {}
        assert [gap.reason for gap in lacking(name, world)] == [Reason.INVALID]


class TestUtilization:
    def test_each_engine_of_each_process_is_a_fraction(self) -> None:
        found = told(UTILIZATION, {SAMPLES: [sample(7, 1000, 85, 18, 1, 2, 3, 4)]})
        own = (PID, 7), ("process.executable.name", "job7")
        parts = dict(zip(ENGINES, (0.85, 0.18, 0.01, 0.02, 0.03, 0.04), strict=True))
        assert found == {(*own, (ENGINE, engine)): part for engine, part in parts.items()}

    def test_of_several_samples_of_a_process_the_newest_counts(self) -> None:
        listed = [sample(7, 1002, 30), sample(7, 1003, 40), sample(7, 1001, 50)]
        assert [*told(UTILIZATION, {SAMPLES: listed}).values()] == [0.4]

    def test_an_older_driver_tells_of_fewer_engines(self) -> None:
        found = told(UTILIZATION, {OLDER: [sample(7, 1000, 85, 18, 1, 2)]})
        engines = {dict(attributes)[ENGINE] for attributes in found}
        assert engines == {"sm", "dram", "nvenc", "nvdec"}

    def test_the_busiest_comes_first(self) -> None:
        listed = [sample(7, 1000, 10), sample(8, 1000, 30), sample(9, 1000, 20)]
        pids = [dict(attributes)[PID] for attributes in told(UTILIZATION, {SAMPLES: listed})]
        assert [*dict.fromkeys(pids)] == [8, 9, 7]

    def test_more_than_all_of_an_engine_is_a_gap(self) -> None:
        world = {SAMPLES: [sample(7, 1000, 101, 18)]}
        assert [*told(UTILIZATION, world).values()] == [0.18]
        assert [gap.reason for gap in lacking(UTILIZATION, world)] == [Reason.INVALID]

    def test_nobody_at_work_is_no_point(self) -> None:
        assert told(UTILIZATION, {SAMPLES: []}) == {}
