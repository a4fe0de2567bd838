"""What the agent tells of itself, out of a snapshot."""

import os

from otel_gpu import pulse
from otel_gpu.attribution import Claims, Health, View
from otel_gpu.exports import Backlog, ExportStats
from otel_gpu.model import Gap, Missing, Point, Reason, Snapshot, System
from otel_gpu.usage import Usage
from tests.machine import gpu

KNOWN = {"GPU-0": gpu(0), "GPU-1": gpu(1)}


def gap(metric: str, uuid: str, reason: Reason) -> Gap:
    return Gap(metric, uuid, Missing(reason, "why"))


def missing(*gaps: Gap) -> dict[tuple[str, ...], float]:
    points = pulse.reading_missing(Snapshot(gaps=gaps))
    return {(uuid, *(str(v) for _, v in point.attributes)): point.value for uuid, point in points}


class Source:
    """A source of owners that says of itself what it is told to say."""

    def __init__(self, health: Health) -> None:
        self._health = health

    def claims(self, _view: View) -> Claims:
        return Claims()

    def health(self) -> Health:
        return self._health

    def close(self) -> None:
        """Hold nothing."""


def test_the_driver_is_up_while_there_is_no_trouble() -> None:
    assert list(pulse.nvml_up(Snapshot())) == [("", Point(1))]
    assert list(pulse.nvml_up(Snapshot(trouble="not loaded"))) == [("", Point(0))]


def test_a_gpu_that_was_ever_seen_is_up_or_down() -> None:
    snapshot = Snapshot(up={"GPU-0": True, "GPU-1": False})
    assert list(pulse.device_up(snapshot)) == [("GPU-0", Point(1)), ("GPU-1", Point(0))]


def test_values_are_numbers_and_never_bools() -> None:
    """A bool is no OTLP value: one of them fails a whole batch."""
    snapshot = Snapshot(up={"GPU-0": True}, hung=(("nvmlInit", ""),))
    for supply in (pulse.nvml_up, pulse.device_up, pulse.nvml_hung):
        assert {type(point.value) for _, point in supply(snapshot)} == {int}


def test_a_hung_call_names_its_function_and_its_gpu() -> None:
    snapshot = Snapshot(devices=KNOWN, hung=(("nvmlDeviceGetPowerUsage", "GPU-1"),))
    key = (("nvidia.nvml.function", "nvmlDeviceGetPowerUsage"),)
    assert list(pulse.nvml_hung(snapshot)) == [("GPU-1", Point(1, key))]


def test_calls_that_hang_on_gpus_nobody_knows_are_one_series() -> None:
    call = "nvmlDeviceGetHandleByIndex_v2"
    snapshot = Snapshot(devices=KNOWN, hung=((call, "0"), (call, "1"), (call, "GPU-0")))
    assert [uuid for uuid, _ in pulse.nvml_hung(snapshot)] == ["", "GPU-0"]


def test_nothing_hangs_nothing_is_said() -> None:
    assert list(pulse.nvml_hung(Snapshot())) == []


def test_gaps_are_counted_by_gpu_metric_and_reason() -> None:
    assert missing(
        gap("hw.power", "GPU-0", Reason.LOST),
        gap("hw.power", "GPU-0", Reason.STALE),
        gap("hw.temperature", "GPU-0", Reason.LOST),
        gap("hw.temperature", "GPU-0", Reason.LOST),
        gap("hw.temperature", "GPU-1", Reason.LOST),
    ) == {
        ("GPU-0", "hw.power", "lost"): 1,
        ("GPU-0", "hw.power", "stale"): 1,
        ("GPU-0", "hw.temperature", "lost"): 2,
        ("GPU-1", "hw.temperature", "lost"): 1,
    }


def test_what_is_unsupported_is_summed_over_the_node() -> None:
    assert missing(
        gap("hw.fan.speed_ratio", "GPU-0", Reason.UNSUPPORTED),
        gap("hw.fan.speed_ratio", "GPU-1", Reason.UNSUPPORTED),
        gap("hw.fan.speed_ratio", "GPU-1", Reason.PERMISSION),
    ) == {
        ("", "hw.fan.speed_ratio", "unsupported"): 2,
        ("GPU-1", "hw.fan.speed_ratio", "permission"): 1,
    }


def test_restarts_are_told_by_reason_from_zero() -> None:
    assert list(pulse.restarts({"hung": 0, "died": 2})) == [
        ("", Point(0, (("otel_gpu.reason", "hung"),))),
        ("", Point(2, (("otel_gpu.reason", "died"),))),
    ]


def test_a_source_of_owners_is_up_or_says_why_not() -> None:
    well = Source(Health("static", up=True))
    ill = Source(Health("kubelet", up=False, reason="timeout", detail="no answer in 2 s"))
    assert list(pulse.attribution_up([well, ill])) == [
        ("", Point(1, (("otel_gpu.source", "static"),))),
        ("", Point(0, (("otel_gpu.source", "kubelet"), ("otel_gpu.reason", "timeout")))),
    ]


def test_a_source_that_nobody_insists_on_and_that_has_nothing_is_not_told_of() -> None:
    assert list(pulse.attribution_up([Source(Health("slurm", up=True, dormant=True))])) == []


def test_an_answer_that_is_kept_has_an_age() -> None:
    well = Source(Health("static", up=True))
    ill = Source(Health("kubelet", up=False, reason="timeout", held_s=12.5))
    assert list(pulse.attribution_held([well, ill])) == [
        ("", Point(12.5, (("otel_gpu.source", "kubelet"),)))
    ]


def test_the_build_names_the_versions_that_are_known() -> None:
    ((_, unknown),) = pulse.build_info(Snapshot(), "1.2.3", "1.45.2")
    assert dict(unknown.attributes) == {
        "service.version": "1.2.3",
        "telemetry.sdk.version": "1.45.2",
    }
    system = System(driver_version="580.159.04", nvml_version="13.580", cuda_version="13.0")
    ((uuid, known),) = pulse.build_info(Snapshot(system=system), "1.2.3", "1.45.2")
    assert (uuid, known.value) == ("", 1)
    assert dict(known.attributes) == dict(unknown.attributes) | {
        "nvidia.nvml.version": "13.580",
        "nvidia.cuda.version": "13.0",
        "hw.driver_version": "580.159.04",
    }


WAITING = Backlog(4096, 2, 1400, 10_000_000_000, {"full": 30})
EXPORTS = {
    "otlp/0": ExportStats(700, 1400, {"503": 30, "rejected": 2}, backlog=WAITING),
    "otlp/1": ExportStats(700, backlog=Backlog()),
    "console/2": ExportStats(5),
}


def by_target(points: pulse.Points) -> list[tuple[str, str, float]]:
    """Give the target, what else the point says, and the value."""
    return [
        (str(point.attributes[0][1]), "".join(str(text) for _, text in point.attributes[1:]), value)
        for _, point in points
        for value in [point.value]
    ]


def test_exports_are_counted_by_target_and_failures_by_their_kind() -> None:
    assert by_target(pulse.exported(EXPORTS)) == [
        ("otlp/0", "", 700),
        ("otlp/0", "503", 30),
        ("otlp/0", "rejected", 2),
        ("otlp/1", "", 700),
        ("console/2", "", 5),
    ]


def test_what_waits_is_told_by_target() -> None:
    waiting = [("otlp/0", "", 1400), ("otlp/1", "", 0), ("console/2", "", 0)]
    assert by_target(pulse.inflight(EXPORTS)) == waiting


def test_a_queue_tells_its_size_its_age_and_what_it_lost_and_others_have_none() -> None:
    assert by_target(pulse.queue_size(EXPORTS)) == [("otlp/0", "", 4096), ("otlp/1", "", 0)]
    assert by_target(pulse.queue_age(EXPORTS, 12_500_000_000)) == [
        ("otlp/0", "", 2.5),
        ("otlp/1", "", 0.0),
    ]
    assert by_target(pulse.queue_dropped(EXPORTS)) == [("otlp/0", "full", 30)]


def test_a_clock_that_was_set_back_makes_no_queue_younger_than_now() -> None:
    assert by_target(pulse.queue_age(EXPORTS, 9_000_000_000))[0] == ("otlp/0", "", 0.0)


def test_the_agent_tells_what_it_uses_itself_and_what_its_worker_uses() -> None:
    worker = Usage(cpu_s=1.5, rss_bytes=4096)
    memory = {
        dict(point.attributes)["otel_gpu.process.role"]: point.value
        for _, point in pulse.memory_usage(worker)
    }
    cpu = {
        dict(point.attributes)["otel_gpu.process.role"]: point.value
        for _, point in pulse.cpu_time(worker)
    }
    assert (memory["worker"], cpu["worker"]) == (4096, 1.5)
    assert memory["agent"] > 5_000_000
    assert 0 < cpu["agent"] <= sum(os.times()[:2]) + 1


def test_without_a_worker_there_is_the_agent_alone() -> None:
    assert len(list(pulse.memory_usage(None))) == 1
