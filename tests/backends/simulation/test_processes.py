from __future__ import annotations

import pytest

from otel_gpu.catalog.processes import LISTS
from otel_gpu.model import Answer, Code, Query
from tests.backends.box import MEMORY, RATES, FakeClock, one, opened, simulated, value

COMPUTE = LISTS["compute"]
USED = Query("nvmlDeviceGetProcessesUtilizationInfo", (0,))
OLD_USED = Query("nvmlDeviceGetProcessUtilization", (0,))
ENCODER = Query("nvmlDeviceGetEncoderStats")


def test_a_process_is_there_while_a_job_runs_with_the_memory_that_is_used() -> None:
    clock = FakeClock()
    backend = opened("h200x8,load=0.5", clock)
    seen = set()
    for _ in range(400):
        clock.now += 5
        listed, busy = value(backend, COMPUTE), value(backend, RATES)["gpu"] > 0
        assert bool(listed) == busy
        for process in listed:
            assert process["name"] == "python3"
            assert process["usedGpuMemory"] == value(backend, MEMORY)["used"]
            assert process["gpuInstanceId"] == process["computeInstanceId"] == 0xFFFFFFFF
        seen.add(busy)
    assert seen == {True, False}


def test_a_job_keeps_its_pid_and_the_next_has_another() -> None:
    clock = FakeClock()
    backend = opened("h200x8,load=0.5", clock)
    stretches: list[set[int]] = [set()]
    for _ in range(6000):
        clock.now += 1
        listed = value(backend, COMPUTE)
        if listed:
            stretches[-1].add(listed[0]["pid"])
        elif stretches[-1]:
            stretches.append(set())
    jobs = [pids for pids in stretches if pids]
    assert len(jobs) > 10
    assert {len(pids) for pids in jobs} == {1}
    assert len(set.union(*jobs)) == len(jobs)


def test_jobs_without_a_pause_between_them_are_processes_of_their_own() -> None:
    clock = FakeClock()
    backend = opened("h200x8,load=1", clock)
    pids = set()
    for _ in range(300):
        clock.now += 10
        [process] = value(backend, COMPUTE)
        pids.add(process["pid"])
    assert len(pids) > 8


def test_nobody_draws_and_nobody_shares() -> None:
    backend = opened("rtx4090")
    assert value(backend, LISTS["graphics"]) == value(backend, LISTS["mps"]) == []


def test_a_divided_gpu_lists_the_processes_of_its_instances() -> None:
    backend = simulated("a100-mig,load=1")
    gpu, *parts = [device for device in backend.open().devices if device.minor == 2]
    listed = []
    for part in parts:
        memory, compute, graphics, mps = backend.ask(part.uuid, [MEMORY, *LISTS.values()])
        [process] = compute.value
        assert process["usedGpuMemory"] == memory.value["used"]
        assert process["gpuInstanceId"] == part.gpu_instance
        assert process["computeInstanceId"] == part.compute_instance
        assert graphics.value == mps.value == []
        listed.append(process)
    assert backend.ask(gpu.uuid, [COMPUTE]) == [Answer(0, listed)]
    assert len({process["pid"] for process in listed}) == 4
    assert one(backend, USED) == one(backend, OLD_USED) == Answer(Code.NOT_SUPPORTED)


def test_a_gpu_without_memory_of_its_own_tells_what_a_process_has_of_the_cpus() -> None:
    backend = opened("gb10,load=1")
    [process] = value(backend, COMPUTE)
    assert not one(backend, MEMORY).ok
    assert 1 << 30 < process["usedGpuMemory"] < 128e9


def test_what_a_process_uses_is_what_the_gpu_is_used() -> None:
    backend = opened("l4,load=1")
    [process], [used] = value(backend, COMPUTE), value(backend, USED)
    rates = value(backend, RATES)
    assert used["pid"] == process["pid"]
    assert (used["smUtil"], used["memUtil"]) == (rates["gpu"], rates["memory"])
    assert used["decUtil"] > used["encUtil"] > 0
    assert used["ofaUtil"] == 0


def test_use_is_told_once_until_there_is_more_of_it() -> None:
    clock = FakeClock()
    backend = opened("l4,load=1", clock)
    [used] = value(backend, USED)
    newer = Query(USED.call, (used["timeStamp"],))
    assert one(backend, newer) == Answer(Code.NOT_FOUND)
    clock.now += 1
    [later] = value(backend, newer)
    assert later["timeStamp"] == used["timeStamp"] + 1_000_000


def test_nothing_is_found_where_nothing_runs() -> None:
    backend = opened("l4,load=0")
    assert one(backend, USED) == one(backend, OLD_USED) == Answer(Code.NOT_FOUND)
    assert value(backend, ENCODER) == [0, 0, 0]


def test_an_old_library_knows_the_older_form() -> None:
    backend = opened("t4,load=1")
    assert one(backend, USED) == Answer(Code.FUNCTION_NOT_FOUND)
    [used] = value(backend, OLD_USED)
    assert used.keys() == {"timeStamp", "pid", "smUtil", "memUtil", "encUtil", "decUtil", "name"}


def test_sessions_of_the_encoder_go_with_its_use() -> None:
    backend = opened("l4,load=1")
    sessions, frames, latency = value(backend, ENCODER)
    used, _ = value(backend, Query("nvmlDeviceGetEncoderUtilization"))
    assert (sessions, latency) == (1, 2000)
    assert frames == pytest.approx(500 * used / 100, abs=2.5)  # the one is rounded to percents
    assert value(opened("h200x8,load=1"), ENCODER) == [0, 0, 0]
    stats = value(backend, Query("nvmlDeviceGetFBCStats"))
    assert stats == {"sessionsCount": 0, "averageFPS": 0, "averageLatency": 0}
