from __future__ import annotations

import time
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from otel_gpu.backends.recorded import RecordedBackend, record, timeless, write
from otel_gpu.model import Answer, BackendError, Code, Query
from otel_gpu.worker.supervisor import Supervisor

POWER = Query("nvmlDeviceGetPowerUsage")
FAN = Query("nvmlDeviceGetFanSpeed")
SERIAL = Query("nvmlDeviceGetSerial")
A, B, MIG = (
    "GPU-12345678-9abc-def0-1234-56789abcdef0",
    "GPU-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
    "MIG-0fedcba9-8765-4321-0fed-cba987654321",
)


def samples(since_us: int) -> Query:
    return Query("nvmlDeviceGetSamples", (0, since_us))


def utilization(since_us: int) -> Query:
    return Query("nvmlDeviceGetProcessUtilization", (since_us,))


def device(uuid: str, index: int, **answers: Any) -> dict[str, Any]:
    facts = {"uuid": uuid, "index": index, "minor": index, "serial": f"165000000000{index}"}
    return {"device": facts, "answers": answers}


@pytest.fixture
def path(tmp_path: Path) -> str:
    first = device(
        A,
        0,
        nvmlDeviceGetPowerUsage=[[0, 1], [15], [0, 3]],
        nvmlDeviceGetFanSpeed=[[3]],
        nvmlDeviceGetSerial=[[0, "1650000000000"]],
    )
    first["answers"]["nvmlDeviceGetSamples(0, 0)"] = [[0, [[100, 7], [200, 8]]], [0, [[300, 9]]]]
    first["answers"]["nvmlDeviceGetProcessUtilization(0)"] = [
        [0, [{"pid": 4711, "timeStamp": 100}, {"pid": 12, "timeStamp": 200}]]
    ]
    instance = device(MIG, 1)
    instance["device"]["parent"] = B
    system = {"driver_version": "580.1"}
    devices = [first, device(B, 1, nvmlDeviceGetPowerUsage=[[0, 10]]), instance]
    contents = {"format": 1, "system": system, "devices": devices, "refused": []}
    write(tmp_path / "machine.json", contents)
    return str(tmp_path / "machine.json")


@pytest.fixture
def backend(path: str) -> RecordedBackend:
    backend = RecordedBackend(path)
    backend.open()
    return backend


def test_each_time_that_it_is_asked_the_next_answer_comes_and_the_last_stays(
    backend: RecordedBackend,
) -> None:
    got = [backend.ask(A, [POWER, FAN]) for _ in range(4)]
    assert [power for power, _ in got] == [Answer(0, 1), Answer(15), Answer(0, 3), Answer(0, 3)]
    assert {fan for _, fan in got} == {Answer(3)}
    assert backend.ask(B, [POWER]) == [Answer(0, 10)]  # which has a sequence of its own


def test_opening_begins_anew(backend: RecordedBackend) -> None:
    backend.ask(A, [POWER])
    backend.open()
    assert backend.ask(A, [POWER]) == [Answer(0, 1)]


def test_what_is_not_in_the_recording_is_not_supported(backend: RecordedBackend) -> None:
    assert backend.ask(B, [FAN, POWER]) == [Answer(Code.NOT_SUPPORTED), Answer(0, 10)]


def test_a_gpu_that_is_not_there_is_told_from_a_query_that_is_not(
    backend: RecordedBackend,
) -> None:
    assert backend.ask("GPU-x", [POWER]) == [Answer(Code.GPU_NOT_FOUND)]
    backend.close()
    assert backend.ask(A, [POWER]) == [Answer(Code.GPU_NOT_FOUND)]


@pytest.mark.parametrize(
    ("exclude", "left"),
    [({A}, [B, MIG]), ({MIG}, [A, B]), ({B}, [A]), ({"1"}, [A]), ({"7"}, [A, B, MIG])],
)
def test_a_gpu_is_left_out_with_its_instances_by_uuid_or_index(
    path: str, exclude: set[str], left: list[str]
) -> None:
    system = RecordedBackend(path).open(frozenset(exclude))
    assert [device.uuid for device in system.devices] == left


def test_a_ring_buffer_gives_what_is_newer_and_then_nothing(backend: RecordedBackend) -> None:
    assert backend.ask(A, [samples(100)]) == [Answer(0, [[200, 8]])]
    assert backend.ask(A, [samples(200)]) == [Answer(0, [[300, 9]])]
    assert backend.ask(A, [samples(300)]) == [Answer(Code.NOT_FOUND)]
    assert backend.ask(A, [utilization(100)]) == [Answer(0, [{"pid": 12, "timeStamp": 200}])]
    assert timeless(samples(300)) == (samples(0), 300)


def test_each_call_is_announced(backend: RecordedBackend) -> None:
    calls: list[tuple[str, str]] = []
    backend.on_call = lambda uuid, call: calls.append((uuid, call))
    backend.ask(A, [POWER, samples(7)])
    assert calls == [(A, "nvmlDeviceGetPowerUsage"), (A, "nvmlDeviceGetSamples")]


def test_a_replay_that_is_recorded_is_the_same_machine_with_masked_identities(
    path: str, tmp_path: Path
) -> None:
    backend = RecordedBackend(path)
    system = backend.open()
    asked = {A: [POWER, FAN, SERIAL, samples(0), utilization(0)], B: [POWER], MIG: []}
    data = record(backend, system, asked, label="again", sweeps=4, recorded=date(2026, 1, 31))
    assert (data["label"], data["recorded"]) == ("again", "2026-01-31")
    first, second, instance = data["devices"]
    assert first["answers"]["nvmlDeviceGetPowerUsage"] == [[0, 1], [15], [0, 3]]
    assert first["answers"]["nvmlDeviceGetFanSpeed"] == [[3]]
    assert first["answers"]["nvmlDeviceGetSerial"] == [[0, "0000000000001"]]
    assert second["answers"] == {"nvmlDeviceGetPowerUsage": [[0, 10]]}
    assert instance["device"]["parent"] == second["device"]["uuid"]
    write(tmp_path / "again.json", data)
    text = (tmp_path / "again.json").read_text()
    assert not [secret for secret in (A, B, MIG, "165000000", "4711") if secret in text]
    again = RecordedBackend(str(tmp_path / "again.json"))
    gpu = again.open().devices[0].uuid
    told = [again.ask(gpu, [POWER])[0] for _ in range(3)]
    assert told == [
        Answer(0, 1),
        Answer(15),
        Answer(0, 3),
    ]


def test_sweeps_are_as_far_apart_as_was_asked(path: str) -> None:
    backend = RecordedBackend(path)
    before_s = time.monotonic()
    record(backend, backend.open(), {A: [POWER]}, sweeps=3, pause_s=0.02)
    assert time.monotonic() - before_s >= 0.04


def test_a_file_that_is_no_recording_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(BackendError, match=r"bad\.json"):
        RecordedBackend(str(tmp_path / "bad.json")).open()


def test_a_recorded_machine_is_replayed_in_a_worker(path: str) -> None:
    supervisor = Supervisor(f"recorded:{path}")
    try:
        system = supervisor.system(time.monotonic())
        assert system
        assert [device.uuid for device in system.devices] == [A, B, MIG]
        assert supervisor.ask([(A, [POWER])])[0].answers == [Answer(0, 1)]
    finally:
        supervisor.close()
