from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import otel_gpu
from otel_gpu.backends import open_backend
from otel_gpu.backends.gpm import CALL as GPM
from otel_gpu.backends.simulated import SimulatedBackend
from otel_gpu.backends.simulation.boxes import BOXES
from otel_gpu.catalog import FAMILIES
from otel_gpu.catalog.reading import FIELD, call, split
from otel_gpu.model import (
    Answer,
    Backend,
    BackendError,
    Code,
    ConfigError,
    Kind,
    Metric,
    Profile,
    Query,
    Refused,
)
from tests.backends.box import (
    AVERAGE,
    CAPPED,
    COOL,
    ENERGY,
    INSTANT,
    MEMORY,
    RING,
    USAGE,
    WARMTH,
    FakeClock,
    gpu_uuid,
    one,
    opened,
    readable,
    simulated,
    sweep,
    value,
)

EVERY_BOX = pytest.mark.parametrize("box", BOXES)


def test_it_is_a_backend_and_open_backend_finds_it() -> None:
    backend: Backend = open_backend("simulated:t4,gpus=1")
    assert [device.model for device in backend.open().devices] == ["Tesla T4"]
    backend.close()


@EVERY_BOX
def test_the_same_seed_and_time_give_the_same_answers_in_any_process(box: str) -> None:
    clock = FakeClock(123_456.7)
    one_run, other_run = simulated(f"{box},seed=3", clock), simulated(f"{box},seed=3", clock)
    devices = one_run.open().devices
    assert other_run.open().devices == devices
    clock.now += 3600
    for device in devices:
        assert sweep(one_run, device) == sweep(other_run, device)


def test_another_seed_has_the_same_gpus_doing_something_else() -> None:
    clock = FakeClock()
    first, second = simulated("seed=1", clock), simulated("seed=2", clock)
    assert first.open() == second.open()
    assert value(first, ENERGY) != value(second, ENERGY)
    assert value(first, INSTANT) != value(second, INSTANT)


@given(st.lists(st.floats(0.001, 500), min_size=1, max_size=30))
@settings(max_examples=10)
def test_how_often_it_is_asked_changes_nothing(pauses: list[float]) -> None:
    clock = FakeClock()
    watched, left_alone = opened("gpus=1", clock), opened("gpus=1", clock)
    [device] = watched.open().devices
    for pause in pauses:
        clock.now += pause
        sweep(watched, device)
    clock.now += 1
    steady = [metric for metric in readable(device) if not profiled(metric)]
    assert len(steady) > 50
    assert sweep(watched, device, steady) == sweep(left_alone, device, steady)


def profiled(metric: Metric) -> bool:
    """Whether it is about the time since it was last asked for."""
    return any(query.call == GPM for query in metric.read.queries)


def test_no_sample_comes_twice_when_the_two_clocks_are_read_unevenly() -> None:
    clock, wobble = FakeClock(), iter(range(0, 9_000_000, 17_123))
    backend = SimulatedBackend.from_spec(
        "gpus=1", clock=clock, time_ns=lambda: clock.time_ns() + next(wobble)
    )
    backend.open()
    stamps: list[int] = []
    for _ in range(100):
        clock.now += 0.5
        since = stamps[-1] if stamps else 0
        stamps += [stamp for stamp, _ in value(backend, Query(RING.call, (0, since)))]
    assert {after - before for before, after in pairwise(stamps)} == {20_000}


def test_samples_follow_a_step_of_the_wall_clock() -> None:
    clock, step = FakeClock(1000.01), [0]
    backend = SimulatedBackend.from_spec(
        "gpus=1", clock=clock, time_ns=lambda: clock.time_ns() + step[0]
    )
    backend.open()
    before = value(backend, RING)[-1][0]
    step[0] = 3_600_000_000_000
    assert value(backend, RING)[-1][0] - before == 3_600_000_000


def test_mig_instances_are_devices_of_their_gpu() -> None:
    devices = simulated("a100-mig").open().devices
    gpus = [device for device in devices if not device.is_instance]
    parts = [device for device in devices if device.is_instance]
    assert (len(gpus), len(parts)) == (2, 11)
    assert len({device.uuid for device in devices}) == 13
    assert {part.parent for part in parts} == {gpu.uuid for gpu in gpus}
    assert [part.mig_profile for part in parts if part.parent == gpus[0].uuid] == [
        "3g.40gb",
        "2g.20gb",
        "1g.10gb",
        "1g.10gb",
    ]
    assert [gpu.minor for gpu in gpus] == [2, 3]


def test_excluded_gpus_are_left_out_by_uuid_or_by_index_and_are_not_touched() -> None:
    backend = simulated("h200x8")
    touched: list[str] = []
    backend.on_call = lambda uuid, _: touched.append(uuid)
    second = backend._spec.box.device(2).uuid
    system = backend.open(frozenset({second, "5"}))
    assert [device.index for device in system.devices] == [0, 1, 3, 4, 6, 7]
    assert system.refused == ()
    assert touched == ["", "0", "1", "3", "4", "6", "7"]
    assert backend.ask(second, [USAGE]) == [Answer(Code.GPU_NOT_FOUND)]


def test_one_instance_can_be_left_out() -> None:
    backend = simulated("a100-mig")
    part = next(device for device in backend.open().devices if device.is_instance)
    again = backend.open(frozenset({part.uuid})).devices
    assert len(again) == 12
    assert part not in again


def test_before_and_after_it_is_open_nothing_answers() -> None:
    backend = simulated()
    [device, *_] = backend.open().devices
    backend.close()
    backend.close()
    assert backend.ask(device.uuid, [USAGE, MEMORY]) == [Answer(Code.UNINITIALIZED)] * 2
    backend.open()
    assert backend.ask(device.uuid, [USAGE])[0].ok


def test_every_call_is_told_before_it_is_made_and_fields_travel_in_one() -> None:
    backend = simulated("gpus=1")
    told: list[tuple[str, str]] = []
    backend.on_call = lambda uuid, function: told.append((uuid, function))
    [device] = backend.open().devices
    assert told == [("", "nvmlInitWithFlags"), ("0", "nvmlDeviceGetHandleByIndex")]
    told.clear()
    backend.ask(device.uuid, [INSTANT, MEMORY, AVERAGE, CAPPED])
    assert told == [(device.uuid, FIELD), (device.uuid, MEMORY.call)]


def test_a_lost_gpu_answers_with_its_code_and_the_others_go_on() -> None:
    clock = FakeClock()
    backend = opened("h200x8,fault=lost:GPU3@20s-60s", clock)
    assert one(backend, USAGE, 3).ok
    clock.now += 20
    assert backend.ask(gpu_uuid(backend, 3), [USAGE, INSTANT]) == [Answer(Code.GPU_IS_LOST)] * 2
    assert one(backend, USAGE, 2).ok
    system = backend.open()
    assert system.refused == (Refused(3, Code.GPU_IS_LOST, gpu_uuid(backend, 3)),)
    assert [device.index for device in system.devices] == [0, 1, 2, 4, 5, 6, 7]
    clock.now += 40
    assert len(backend.open().devices) == 8
    assert one(backend, USAGE, 3).ok


def test_a_gpu_that_was_lost_before_anyone_saw_it_has_no_name() -> None:
    system = simulated("h200x8,fault=lost:GPU3").open()
    assert system.refused == (Refused(3, Code.GPU_IS_LOST),)


def test_a_lost_gpu_takes_its_instances_with_it() -> None:
    clock = FakeClock()
    backend = simulated("a100-mig,fault=lost:GPU1@5s", clock)
    parts = [device for device in backend.open().devices if device.minor == 3]
    clock.now += 5
    for part in parts:
        assert backend.ask(part.uuid, [MEMORY]) == [Answer(Code.GPU_IS_LOST)]
    assert {device.minor for device in backend.open().devices} == {2}


def test_a_call_can_be_refused_on_every_gpu_or_on_one() -> None:
    backend = opened(f"fault=unsupported:{COOL.call},fault=refuse:4:{USAGE.call}@GPU1")
    assert one(backend, COOL) == one(backend, COOL, 7) == Answer(Code.NOT_SUPPORTED)
    assert one(backend, USAGE, 0).ok
    assert one(backend, USAGE, 1) == Answer(Code.NO_PERMISSION)


def test_one_field_of_a_batch_can_be_refused() -> None:
    backend = opened("fault=unsupported:field186")
    instant, average = backend.ask(gpu_uuid(backend, 0), [INSTANT, AVERAGE])
    assert instant == Answer(Code.NOT_SUPPORTED)
    assert average.ok


def test_a_gpu_that_may_not_be_opened_is_counted() -> None:
    backend = simulated("fault=refuse:4:nvmlDeviceGetHandleByIndex@GPU0")
    assert backend.open().refused == (Refused(0, Code.NO_PERMISSION),)


def test_a_slow_call_takes_its_time_and_answers() -> None:
    clock = FakeClock()
    backend = opened(f"gpus=2,fault=slow:{ENERGY.call}:50ms", clock)
    answers = backend.ask(gpu_uuid(backend, 1), [USAGE, ENERGY, MEMORY])
    assert clock.now == 1000.05
    assert all(answer.ok for answer in answers)


def test_a_hanging_call_never_comes_back_and_was_told_before() -> None:
    backend = SimulatedBackend.from_spec(f"gpus=2,fault=hang:{WARMTH.call}@GPU1")
    told: list[tuple[str, str]] = []
    reached = threading.Event()

    def hear(uuid: str, function: str) -> None:
        told.append((uuid, function))
        if function == WARMTH.call:
            reached.set()

    backend.open()
    assert one(backend, WARMTH, 0).ok
    backend.on_call = hear
    uuid = gpu_uuid(backend, 1)
    stuck = threading.Thread(target=backend.ask, args=(uuid, [USAGE, WARMTH, ENERGY]), daemon=True)
    stuck.start()
    assert reached.wait(10)
    stuck.join(0.1)
    assert stuck.is_alive()
    assert told == [(uuid, USAGE.call), (uuid, WARMTH.call)]


def test_an_absent_driver_is_an_error_with_a_remedy_until_it_is_there() -> None:
    clock = FakeClock()
    backend = simulated("gpus=1,fault=absent@0s-20s", clock)
    with pytest.raises(BackendError, match="fault=absent@0s-20s") as caught:
        backend.open()
    assert caught.value.code == Code.DRIVER_NOT_LOADED
    assert "modprobe nvidia" in caught.value.remedy
    assert backend.ask(gpu_uuid(backend, 0), [USAGE]) == [Answer(Code.UNINITIALIZED)]
    clock.now += 20
    assert len(backend.open().devices) == 1


def test_moments_can_be_counted_from_before_the_process() -> None:
    clock = FakeClock(1000)
    assert opened("gpus=1,fault=lost:GPU0@20s", clock)._parts
    assert not opened("gpus=1,start=980,fault=lost:GPU0@20s", clock)._parts


def test_its_documentation_names_every_box_and_no_other() -> None:
    said = str(SimulatedBackend.__doc__)
    listed = said[said.index("BOX is") : said.index("- `gpus=N`")]
    assert set(re.findall(r"`([^`]+)`", listed)) == BOXES.keys()


def test_a_bad_spec_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="there is no box 'dgx'"):
        SimulatedBackend.from_spec("dgx")


def test_a_metric_that_is_added_to_the_catalog_is_simulated_by_that_alone() -> None:
    new = Metric(
        name="nvidia.gpu.pcie.link.width",
        kind=Kind.GAUGE,
        unit="{lane}",
        brief="Lanes that the link uses.",
        read=split(
            "nvidia.gpu.direction",
            {
                "in": call("nvmlDeviceGetNewCounters", path=("rx", 0), scale=1024),
                "out": call("nvmlDeviceGetNewCounters", path=("tx",), profile=Profile.FULL),
            },
        ),
        integer=True,
        typical=(4096, 16_384),
    )
    family = (*FAMILIES["power"], new)
    clock = FakeClock()
    backend = simulated("h200x8,fault=slow:nvmlDeviceGetNewCounters:1ms", clock, catalog=family)
    values = set()
    for device in backend.open().devices:
        [(_, points, gaps)] = sweep(backend, device, [new])
        assert gaps == []
        assert [point.attributes[0][1] for point in points] == ["in", "out"]
        assert all(4096 <= point.value <= 16_384 for point in points)
        values.add(tuple(point.value for point in points))
    assert len(values) == 8
    assert one(opened(), Query("nvmlDeviceGetNewCounters")) == Answer(Code.NOT_SUPPORTED)


def test_a_counter_that_is_added_keeps_growing_in_a_new_process() -> None:
    new = replace(
        FAMILIES["power"][0],
        name="nvidia.gpu.new",
        kind=Kind.COUNTER,
        read=call("nvmlDeviceGetNewCounter", scale=1e-3),
        typical=(60, 700),
    )
    clock = FakeClock()
    first = value(opened("gpus=1", clock, catalog=[new]), Query("nvmlDeviceGetNewCounter"))
    clock.now += 100
    second = value(opened("gpus=1", clock, catalog=[new]), Query("nvmlDeviceGetNewCounter"))
    assert 6_000_000 <= second - first <= 70_000_000


def test_importing_it_needs_nothing_that_is_installed() -> None:
    root = str(Path(otel_gpu.__file__).parents[1])
    code = f"import sys; sys.path.insert(0, {root!r}); import otel_gpu.backends.simulated"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True, timeout=30)


def test_a_device_can_be_written_as_json() -> None:
    system = simulated("a100-mig").open()
    assert json.loads(json.dumps(asdict(system)))["library"] == "simulated"
