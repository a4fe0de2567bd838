"""Whole examinations: of this machine, of machines in folders, and of drivers that go wrong."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from otel_gpu.catalog import CATALOG
from otel_gpu.doctor import LIMIT_S, Report, examine, lines
from otel_gpu.doctor.matrix import OK
from otel_gpu.model import BackendError, Metric, Reason
from otel_gpu.worker.supervisor import Supervisor
from tests.doctor.box import Box
from tests.doctor.broken import Crawls, Dies, GoesSilent, Hangs, Sound, WithoutPersistence, spec
from tests.doctor.cases import ids

POWER = tuple(metric for metric in CATALOG if metric.name == "hw.power")
QUICK_S = 6.0


def quick(backend: str, metrics: tuple[Metric, ...] = POWER) -> Report:
    return examine(backend, environ={}, metrics=metrics, limit_s=QUICK_S)


def errors(report: Report) -> list[str]:
    return [number for number in ids(report.findings) if number < "GPU058"]


@pytest.fixture(scope="module")
def simulated() -> Report:
    return examine("simulated:h200x8,gpus=2", environ={})


def test_a_simulated_box_is_healthy_and_said_to_be_simulated(simulated: Report) -> None:
    assert simulated.healthy
    assert ids(simulated.findings)[-1] == "GPU090"
    assert len(simulated.matrix.devices) == 2


def test_what_is_not_read_of_the_box_is_what_it_does_not_have(simulated: Report) -> None:
    assert "GPU061" not in ids(simulated.findings)
    missing = simulated.matrix.gaps(set(Reason) - {Reason.UNSUPPORTED})
    assert missing == {}
    assert simulated.matrix.gaps({Reason.UNSUPPORTED})["hw.fan.speed_ratio"]


def test_the_report_of_a_real_examination_is_valid_json(simulated: Report) -> None:
    document = json.loads(simulated.to_json())
    assert document["readings"]["hw.power"]["nvidia0"]["state"] == OK
    assert document["facts"]["opening"]["hung"] == []


def driverless() -> bool:
    driver = Supervisor("nvml")
    try:
        return driver.system(time.monotonic()) is None and isinstance(driver.trouble, BackendError)
    finally:
        driver.close()


def test_a_machine_without_a_driver_is_told_that_the_library_is_missing(tmp_path: Path) -> None:
    if not driverless():
        pytest.skip("this machine has a driver, so a missing one cannot be shown")
    Box(tmp_path).kernel()
    for root in (Path("/"), tmp_path):
        report = examine("nvml", root, {})
        assert not report.healthy
        assert ids(report.findings)[0] == "GPU003"
        assert "GPU040" in ids(report.findings)
    assert next(lines(report)).startswith("otel-gpu doctor, backend nvml: not healthy; 5 errors")


def test_a_driver_that_hangs_for_good_does_not_hang_doctor() -> None:
    start_s = time.monotonic()
    report = examine(spec(Hangs), environ={}, metrics=POWER)
    assert time.monotonic() - start_s < LIMIT_S
    assert errors(report) == ["GPU045"]
    assert "nvmlInitWithFlags did not return" in report.findings[0].evidence[0]


def test_a_driver_that_takes_ever_so_many_calls_is_slow_and_does_not_hang() -> None:
    start_s = time.monotonic()
    report = quick(spec(Crawls))
    assert time.monotonic() - start_s < QUICK_S
    assert errors(report) == ["GPU047"]


def test_a_library_that_crashes_is_told_with_its_last_words() -> None:
    report = quick(spec(Dies))
    assert errors(report) == ["GPU046"]
    assert "status -11" in report.findings[0].evidence[0]


def test_one_gpu_that_hangs_is_named_and_the_other_is_read() -> None:
    fault = "fault=hang:field186@GPU1"
    report = examine(f"simulated:h200x8,gpus=2,{fault}", environ={}, metrics=POWER, limit_s=9.0)
    assert errors(report) == ["GPU055"]
    assert "nvmlDeviceGetFieldValues" in report.findings[0].evidence[0]
    assert [cell.state for _, _, cell in report.matrix.cells()] == [OK, "timeout"]
    assert report.matrix.up == (True, False)


def test_a_gpu_that_is_lost_after_it_was_opened_is_told() -> None:
    assert errors(quick(spec(GoesSilent))) == ["GPU056"]


def test_a_sound_driver_has_nothing_to_tell() -> None:
    assert ids(quick(spec(Sound)).findings) == ["GPU090"]


def test_persistence_mode_is_asked_of_each_gpu() -> None:
    report = quick(spec(WithoutPersistence))
    assert ids(report.findings) == ["GPU058", "GPU090"]
    assert report.healthy


@pytest.mark.parametrize("backend", ["nothing", "simulated:nothing", "python:nothing:Backend"])
def test_a_backend_that_cannot_be_made_is_a_finding_and_not_a_traceback(backend: str) -> None:
    report = quick(backend)
    assert errors(report) == ["GPU049"]
    assert "nothing" in report.findings[0].evidence[0]
