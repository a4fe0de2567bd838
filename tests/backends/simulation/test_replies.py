from __future__ import annotations

import json
import marshal
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from otel_gpu.backends.capture import load
from otel_gpu.backends.gpm import CALL as GPM
from otel_gpu.backends.simulation.boxes import BOXES
from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.ranges import bounds, plausible
from otel_gpu.catalog.reading import FIELD
from otel_gpu.model import (
    Answer,
    Code,
    Kind,
    Missing,
    Query,
    Reason,
)
from tests.backends.box import (
    AVERAGE,
    CAPPED,
    COOL,
    ENERGY,
    INSTANT,
    MEMORY,
    RATES,
    REASONS,
    RING,
    UNIX_AT_ZERO_NS,
    USAGE,
    WARMTH,
    FakeClock,
    one,
    opened,
    readable,
    simulated,
    sweep,
    value,
)

EVERY_BOX = pytest.mark.parametrize("box", BOXES)
CAPTURES = sorted((Path(__file__).parents[2] / "captures").glob("h200-*.json"))
DEPENDING = frozenset(
    {GPM, "nvmlDeviceGetProcessUtilization", "nvmlDeviceGetProcessesUtilizationInfo"}
)
"""Calls whose refusal depends on what was asked before, or on what runs."""

SUMMED = frozenset({"hw.gpu.io", "nvidia.gpu.engine.time", "otel_gpu.gpm.uncovered.time"})
"""What the ledger makes of GPM's means, which no answer holds."""


def missing(box: str) -> dict[str, str]:
    """What no GPU of a box offers while it trains, and why."""
    clock = FakeClock()
    backend = simulated(f"{box},load=1", clock)
    [device, *_] = backend.open().devices
    sweep(backend, device)
    clock.now += 1
    return {
        f"{metric.name}{[value for _, value in gap.attributes] or ''}": gap.detail
        for metric, _, gaps in sweep(backend, device)
        for gap in gaps
        if metric.name not in SUMMED
    }


@EVERY_BOX
def test_every_reading_of_every_box_can_be_true(box: str) -> None:
    clock = FakeClock()
    backend = simulated(box, clock)
    devices = backend.open().devices
    read = set()
    for _ in range(20):
        for device in devices:
            for metric, points, gaps in sweep(backend, device):
                assert all(plausible(point.value, bounds(metric)) for point in points), metric.name
                for gap in gaps:
                    assert gap.reason is Reason.UNSUPPORTED or may_wait(gap), gap
                read |= {metric.name} if points else set()
        clock.now += 37
    assert {"nvidia.gpu.clock.frequency", "hw.power", "hw.temperature"} <= read


def may_wait(gap: Missing) -> bool:
    """Whether it is of what is not known yet: GPM's first mean, and processes where none runs."""
    return gap.reason is Reason.NOT_READY and any(
        word in gap.detail for word in (GPM, "ProcessesUtilization", "ProcessUtilization")
    )


def test_no_two_gpus_have_the_same_values() -> None:
    backend = opened("h200x8,load=1")
    sent, received = (Query("nvmlDeviceGetPcieThroughput", (way,)) for way in (0, 1))
    for query in (ENERGY, MEMORY, INSTANT, AVERAGE, CAPPED, RING, sent, received):
        answers = [json.dumps(value(backend, query, gpu)) for gpu in range(8)]
        assert len(set(answers)) == 8, query
    assert all(value(backend, sent, gpu) != value(backend, received, gpu) for gpu in range(8))


@EVERY_BOX
def test_answers_are_plain_values_that_travel_between_processes(box: str) -> None:
    backend = simulated(box)
    for device in backend.open().devices:
        queries = [query for metric in readable(device) for query in metric.read.queries]
        answers = [(int(code), value) for code, value in backend.ask(device.uuid, queries)]
        assert marshal.loads(marshal.dumps(answers)) == answers  # noqa: S302 # our own bytes
        for _, answer in answers:
            assert json.loads(json.dumps(answer)) == answer


@pytest.mark.parametrize("box", sorted(BOXES.keys() - {"gb10"}))
def test_memory_adds_up(box: str) -> None:
    clock = FakeClock()
    backend = simulated(box, clock)
    devices = backend.open().devices
    for _ in range(50):
        clock.now += 17.3
        for device in devices:
            info = backend.ask(device.uuid, [MEMORY])[0].value
            assert info["used"] + info["free"] + info["reserved"] == info["total"]
            assert all(isinstance(size, int) and size >= 0 for size in info.values())


def test_energy_is_the_integral_of_power_within_one_percent() -> None:
    clock = FakeClock()
    backend = opened("h200x8,gpus=2", clock)
    for gpu in range(2):
        start, powers = value(backend, ENERGY, gpu), []
        for _ in range(1200):
            clock.now += 0.5
            powers.append(value(backend, INSTANT, gpu))
        used_mj = value(backend, ENERGY, gpu) - start
        assert used_mj == pytest.approx(mean(powers) * 600, rel=0.01)


def test_the_average_is_the_mean_of_the_ring_s_last_second() -> None:
    clock = FakeClock()
    backend = opened("h200x8,load=1", clock)
    for _ in range(20):
        clock.now += 7.3
        samples = [milliwatts for _, milliwatts in value(backend, RING)]
        assert value(backend, AVERAGE) == pytest.approx(mean(samples[-50:]), abs=2)
        assert value(backend, USAGE) == value(backend, AVERAGE)
        assert value(backend, INSTANT) == samples[-1]


@EVERY_BOX
def test_counters_only_grow(box: str) -> None:
    clock = FakeClock()
    backend = simulated(box, clock)
    counters = [metric for metric in CATALOG if metric.kind is Kind.COUNTER]
    [device, *_] = backend.open().devices
    before: dict[tuple[str, Any], float] = {}
    for step in range(300):
        clock.now += 0.001 if step % 3 else 11
        for metric, points, _ in sweep(backend, device, counters):
            for point in points:
                assert point.value >= before.get((metric.name, point.attributes), 0)
                before[metric.name, point.attributes] = point.value
    assert before[("nvidia.gpu.clock.reason.time", (("nvidia.gpu.clock.reason", "sw_power_cap"),))]


def test_margin_and_temperature_add_up_to_the_limit() -> None:
    clock = FakeClock()
    backend = opened("gpus=1", clock)
    for _ in range(50):
        clock.now += 13
        assert value(backend, WARMTH) + value(backend, COOL) == 87


def test_the_cap_s_reason_and_its_time_agree() -> None:
    clock = FakeClock()
    backend = opened("gpus=1,load=1", clock)
    seen = set()
    for _ in range(600):
        clock.now += 1
        before, held = value(backend, CAPPED), bool(value(backend, REASONS) & 4)
        clock.now += 0.04
        grown = value(backend, CAPPED) - before
        if held == bool(value(backend, REASONS) & 4):
            assert grown == pytest.approx(0.04e9 if held else 0, abs=100)
        seen.add(held)
    assert seen == {True, False}


def test_an_idle_box_says_so() -> None:
    backend = opened("t4,load=0")
    for gpu in range(4):
        assert value(backend, RATES, gpu) == {"gpu": 0, "memory": 0}
        assert value(backend, Query("nvmlDeviceGetPerformanceState"), gpu) == 8
        assert value(backend, Query("nvmlDeviceGetCurrentClocksThrottleReasons"), gpu) == 1
    assert len({value(backend, Query("nvmlDeviceGetTemperature", (0,)), n) for n in range(4)}) == 4


def test_the_ring_holds_the_last_samples_at_their_unix_times() -> None:
    clock = FakeClock(1000.01)
    ring = value(opened("gpus=1", clock), RING)
    stamps = [stamp for stamp, _ in ring]
    assert len(ring) == 119
    assert {after - before for before, after in pairwise(stamps)} == {20_000}
    assert stamps[-1] - stamps[0] == 2_360_000
    assert stamps[-1] == UNIX_AT_ZERO_NS // 1000 + 1000 * 1_000_000


def test_the_ring_gives_only_what_is_newer() -> None:
    clock = FakeClock(1000.01)
    backend = opened("gpus=1", clock)
    last = value(backend, RING)[-1][0]
    newer = Query("nvmlDeviceGetSamples", (0, last))
    assert one(backend, newer) == Answer(Code.NOT_FOUND)
    clock.now += 0.1
    assert [stamp - last for stamp, _ in value(backend, newer)] == [
        20_000 * n for n in (1, 2, 3, 4, 5)
    ]


def test_rings_of_another_kind_are_empty() -> None:
    assert one(opened(), Query(RING.call, (5, 0))) == Answer(Code.NOT_FOUND)


@pytest.mark.parametrize(
    "query",
    [
        Query("nvmlDeviceGetClockInfo", (9,)),
        Query("nvmlDeviceGetMaxClockInfo", ()),
        Query("nvmlDeviceGetTemperatureThreshold", (9,)),
        Query("nvmlDeviceGetTemperature", (1,)),
        Query("nvmlDeviceGetFanSpeed_v2", (3,)),
    ],
)
def test_an_argument_that_means_nothing_is_invalid(query: Query) -> None:
    backend = opened("rtx4090" if "Fan" in query.call else "h200x8")
    assert one(backend, query) == Answer(Code.INVALID_ARGUMENT)


@pytest.mark.parametrize(
    "query", [Query("nvmlDeviceGetNobodyKnows"), Query(FIELD, (9999, 0)), Query(FIELD, (186, 7))]
)
def test_what_nobody_knows_is_not_supported(query: Query) -> None:
    assert one(opened(), query) == Answer(Code.NOT_SUPPORTED)


def test_an_h200_lacks_nothing_but_what_such_a_board_has_not() -> None:
    assert missing("h200x8").keys() == {
        "hw.fan.speed_ratio",
        "nvidia.gpu.c2c.throughput",
        "nvidia.gpu.engine.utilization",
        "nvidia.gpu.fabric.fault",
        "nvidia.gpu.fan.speed.target",
        "nvidia.gpu.nvlink.bit_error_rate",
        "nvidia.gpu.nvlink.recoveries",
        "nvidia.gpu.page_retirement.pages",
        "nvidia.gpu.page_retirement.pending",
        "nvidia.gpu.vgpu.licensed",
    }


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_an_h200_offers_and_refuses_what_the_recorded_ones_do(capture: Path) -> None:
    backend = opened("gpus=2")
    for told in load(capture).told.values():
        steady = [query for query in told if query.call not in DEPENDING]
        assert len(steady) > 60
        for query in steady:
            assert one(backend, query).code == told[query][0].code, query


def test_a_geforce_has_fans_and_no_memory_sensor_and_no_serial() -> None:
    backend = simulated("rtx4090", FakeClock(1360))
    [device] = backend.open().devices
    assert (device.fans, device.serial, device.part_number) == (3, "", "")
    fans = [value(backend, Query("nvmlDeviceGetFanSpeed_v2", (n,))) for n in range(3)]
    assert fans[0] < fans[1] < fans[2] <= 100
    assert "hw.temperature['memory']" in missing("rtx4090")


def test_a_t4_on_an_old_driver_is_read_by_the_old_functions() -> None:
    backend = simulated("t4")
    [device, *_] = backend.open().devices
    got = {metric.name: points for metric, points, _ in sweep(backend, device)}
    assert got["hw.temperature"]
    assert got["hw.power"]
    assert len(got["nvidia.gpu.clock.reason.status"]) == 9
    assert not got["nvidia.gpu.power.average"]
    assert "not in this driver's library" in missing("t4")["nvidia.gpu.temperature.margin"]


def test_a_gb10_has_no_memory_of_its_own() -> None:
    lacking = missing("gb10")
    assert {name for name in lacking if ".memory." in name} >= {
        "hw.gpu.memory.usage",
        "hw.gpu.memory.limit",
        "hw.gpu.memory.utilization",
    }
    assert "hw.energy" in lacking
    assert "hw.power" not in lacking


def test_power_of_an_a100_is_of_this_moment() -> None:
    backend = opened("a100-mig")
    assert value(backend, USAGE) == value(backend, RING)[-1][1]
    assert "nvidia.gpu.power.average" in missing("a100-mig")


def test_an_instance_answers_memory_and_its_gpu_no_utilization() -> None:
    backend = simulated("a100-mig")
    devices = backend.open().devices
    part = next(device for device in devices if device.is_instance)
    others = [USAGE, INSTANT, ENERGY, RATES, RING, Query("nvmlDeviceGetTemperature", (0,))]
    memory, *refused = backend.ask(part.uuid, [MEMORY, *others])
    assert memory.ok
    assert refused == [Answer(Code.NOT_SUPPORTED)] * 6
    assert one(backend, RATES) == Answer(Code.NOT_SUPPORTED)


def test_a_gpu_s_memory_is_what_its_instances_have() -> None:
    clock = FakeClock()
    backend = simulated("a100-mig", clock)
    gpu, *parts = [device for device in backend.open().devices if device.minor == 2]
    for _ in range(20):
        clock.now += 61
        [whole] = backend.ask(gpu.uuid, [MEMORY])
        used = [backend.ask(part.uuid, [MEMORY])[0].value["used"] for part in parts]
        assert 0 <= whole.value["used"] - sum(used) < 1 << 22
        assert len(set(used)) == 4
