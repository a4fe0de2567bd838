"""One GPU is ill: its series end and say why, and the others go on."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import requests

from tests.fake_nvml.machine import EVERYTHING
from tests.faults.node import Node
from tests.running import page

pytestmark = pytest.mark.thorough

DEADLINE_S, SWEEP_S = 5.0, 1.0
BUSY_S = 6.0
"""What a machine that does other things besides may add."""


@pytest.mark.parametrize("code", [15, 16, 999])
def test_a_lost_gpu_ends_its_series_keeps_its_name_and_comes_back(node: Node, code: int) -> None:
    node.start()
    node.until(lambda: len(node.watts()) == 3, "power of three")
    before = node.by_gpu("hw_energy_joules_total")
    node.fake.gpus[1].loses(code)
    node.fake.write()
    node.until(lambda: node.up() == [1, 0, 1], "GPU that is down")
    assert node.watts() == {"GPU-a": 100.0, "GPU-c": 102.0}
    assert node.by_gpu("hw_status", hw_state="failed")["GPU-b"] == 1
    assert node.by_gpu("hw_energy_joules_total").keys() == {"GPU-a", "GPU-c"}
    assert [gap["reason"] for gap in node.missing("GPU-b", "hw.power")] == ["lost"]
    assert node.value("otel_gpu_reading_missing", hw_id="GPU-b", otel_gpu_reason="lost") == 1
    assert node.value("otel_gpu_nvml_up") == 1
    assert node.is_well()
    assert "GPU-b" in node.complaint()
    node.fake.gpus[1].recovers(EVERYTHING)
    node.fake.write()
    node.until(lambda: node.up() == [1, 1, 1], "GPU that is back")
    node.until(lambda: node.by_gpu("hw_energy_joules_total") == before, "its energy as before")
    assert node.complaint() == ""
    _, _, log = node.stopped()
    told = [line for line in log if line["message"].startswith("GPU GPU-b ")]
    assert [line["level"] for line in told] == ["error", "info"]  # each once


def test_all_gpus_lost_is_no_reason_to_end(node: Node) -> None:
    node.start()
    node.until(lambda: len(node.watts()) == 3, "power of three")
    for gpu in node.fake.gpus.values():
        gpu.loses()
    node.fake.write()
    node.until(lambda: node.up() == [0, 0, 0], "GPUs that are down")
    assert node.watts() == {}
    assert node.is_well()


def test_a_gpu_that_does_not_open_leaves_the_others_served(node: Node) -> None:
    node.fake.gpus[0].fails("nvmlDeviceGetHandleByIndex_v2", 4)
    node.fake.gpus[1].loses(999)
    node.fake.write()
    node.start()
    node.until(lambda: node.watts() == {"GPU-c": 102.0}, "power of one")
    refused = node.status()["machine"]["refused"]
    assert [(one["index"], one["code"]) for one in refused] == [(0, 4), (1, 999)]
    assert node.is_well()


def test_a_gpu_that_is_gone_after_an_enumeration_is_lost_and_comes_back(node: Node) -> None:
    node.start()
    node.until(lambda: len(node.watts()) == 3, "power of three")
    gone = node.fake.gpus.pop(2)
    node.fake.happens_to_driver(2, 0x3B00)  # something was bound, so the agent looks again
    node.fake.write()
    node.until(lambda: node.up() == [1, 1, 0], "GPU that is gone")
    assert node.watts() == {"GPU-a": 100.0, "GPU-b": 101.0}
    node.fake.gpus[2] = gone
    node.fake.happens_to_driver(2, 0x3B00)
    node.fake.write()
    node.until(lambda: len(node.watts()) == 3, "GPU that is back")


def test_gpus_that_change_places_keep_their_names(node: Node) -> None:
    node.start()
    node.until(lambda: len(node.watts()) == 3, "power of three")
    first, second = (node.fake.gpus[index] for index in (0, 1))
    for gpu, place, milliwatts in ((first, 1, 500_000), (second, 0, 600_000)):
        gpu.who = f"gpu {place}"
        gpu.lines = {key: line.replace(line[:5], gpu.who, 1) for key, line in gpu.lines.items()}
        gpu.field(186, milliwatts, "uint")
    node.fake.happens_to_driver(2, 0x3B00)
    node.fake.write()
    expected = {"GPU-a": 500.0, "GPU-b": 600.0, "GPU-c": 102.0}
    node.until(lambda: node.watts() == expected, "power under the right names")


def test_calls_that_are_refused_are_gaps_with_their_reason(node: Node) -> None:
    node.fake.gpus[0].fails("nvmlDeviceGetTotalEnergyConsumption", 4)
    node.fake.gpus[1].fails("nvmlDeviceGetTotalEnergyConsumption", 3)
    node.fake.write()
    node.start()
    node.until(lambda: node.by_gpu("hw_energy_joules_total").keys() == {"GPU-c"}, "energy")
    reasons = [
        gap["reason"] for uuid in ("GPU-a", "GPU-b") for gap in node.missing(uuid, "hw.energy")
    ]
    assert reasons == ["permission", "unsupported"]
    assert node.up() == [1, 1, 1]


def test_a_counter_that_goes_back_never_falls_below_zero_in_a_rate(node: Node) -> None:
    """Prometheus sees a reset, OTLP a new start: both are what a rate knows how to take."""
    node.start(pipeline=[{"prometheus": {"address": f"127.0.0.1:{node.port}", "created": True}}])
    node.until(lambda: len(node.watts()) == 3, "power of three")
    assert node.by_gpu("hw_energy_joules_total")["GPU-a"] == 5000.0
    node.fake.gpus[0].says("nvmlDeviceGetTotalEnergyConsumption", 7_000)
    node.fake.write()
    begin_s = time.time()
    node.until(lambda: node.by_gpu("hw_energy_joules_total")["GPU-a"] == 7.0, "count from anew")
    wanted = {"accept": "application/openmetrics-text; version=1.0.0"}
    lines = requests.get(
        f"http://127.0.0.1:{node.port}/metrics", headers=wanted, timeout=5
    ).text.splitlines()
    (created,) = [
        float(line.split()[-1])
        for line in lines
        if line.startswith("hw_energy_joules_created") and 'hw_id="GPU-a"' in line
    ]
    assert created >= begin_s - 1.0


def test_one_of_eight_that_hangs_for_ever_costs_the_others_a_deadline_and_two_sweeps(
    simulated: Callable[..., Node], capsys: pytest.CaptureFixture[str]
) -> None:
    node = simulated("h200x8,fault=hang:nvmlDeviceGetTemperatureV@GPU1@4s", sampling={"fast": "1s"})
    node.until(lambda: len(node.watts()) == 8, "power of eight")
    hanging = node.status()["machine"]["gpus"][1]["identity"]["uuid"]
    changed_s: dict[str, float] = {}
    longest_s: dict[str, float] = {}
    shown = node.watts()
    end_s = time.monotonic() + 4 + DEADLINE_S + 6 * SWEEP_S
    while time.monotonic() < end_s:
        watts = node.watts()  # each read is another value
        assert watts.keys() >= shown.keys() - {hanging}  # and every scrape is answered
        now_s = time.monotonic()
        for uuid in shown.keys() - {hanging}:
            if watts[uuid] != shown[uuid]:
                since_s = changed_s.get(uuid, now_s)
                longest_s[uuid] = max(longest_s.get(uuid, 0.0), now_s - since_s)
                changed_s[uuid] = now_s
        shown = watts
        assert page(node.port, "/readyz") == "ok\n"
    with capsys.disabled():
        print(f"\nthe others missed {max(longest_s.values()):.1f} s")  # noqa: T201 - the figure
    assert len(longest_s) == 7
    assert max(longest_s.values()) <= DEADLINE_S + 2 * SWEEP_S + BUSY_S
    assert hanging not in node.watts()
    named = node.by_gpu("otel_gpu_nvml_hung", nvidia_nvml_function="nvmlDeviceGetTemperatureV")
    assert named == {hanging: 1}
    (call,) = node.status()["driver"]["hung"]
    assert (call["function"], call["gpu"]) == ("nvmlDeviceGetTemperatureV", hanging)
    assert node.is_well()
    assert hanging in node.complaint()
