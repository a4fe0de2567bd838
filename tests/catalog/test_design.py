"""The records keep to the design: written down here by hand, so that no record can move silently.

Dashboards and alerts of users hang on these words. A record may be added; to change one is to
change this table, and the changelog.
"""

import pytest

from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.forms import Supplied
from otel_gpu.model import Kind, Metric, Profile, Tier
from tests.machine import gpu

G, C, U, H = Kind.GAUGE, Kind.COUNTER, Kind.UPDOWNCOUNTER, Kind.HISTOGRAM
F, D, S, STATIC = Tier.FAST, Tier.DEFAULT, Tier.SLOW, Tier.STATIC

Row = tuple[str, Kind, str, Tier, int, bool, set[str]]

DESIGN: list[Row] = [
    # name, instrument, UCUM unit, tier, smallest profile, owner's attributes, attributes
    ("hw.gpu.utilization", G, "1", F, 1, True, {"hw.gpu.task"}),
    ("nvidia.gpu.memory_controller.utilization", G, "1", F, 2, True, set()),
    ("hw.gpu.memory.usage", U, "By", F, 1, True, set()),
    ("hw.gpu.memory.limit", U, "By", STATIC, 1, False, set()),
    ("hw.gpu.memory.utilization", G, "1", F, 1, True, set()),
    ("nvidia.gpu.memory.free", U, "By", D, 3, False, set()),
    ("nvidia.gpu.memory.reserved", U, "By", D, 2, False, set()),
    ("nvidia.gpu.bar1.usage", U, "By", D, 3, False, set()),
    ("nvidia.gpu.bar1.limit", U, "By", STATIC, 3, False, set()),
    ("hw.power", G, "W", F, 1, True, set()),
    ("nvidia.gpu.power.average", G, "W", F, 2, True, set()),
    ("nvidia.gpu.power.peak", G, "W", F, 2, False, set()),
    ("nvidia.gpu.power.low", G, "W", F, 3, False, set()),
    ("nvidia.gpu.memory.power", G, "W", D, 3, False, set()),
    ("hw.energy", C, "J", D, 1, False, set()),
    ("nvidia.gpu.power.limit", G, "W", S, 2, False, {"hw.limit_type"}),
    ("hw.temperature", G, "Cel", F, 1, False, {"hw.sensor_location"}),
    ("hw.temperature.limit", G, "Cel", STATIC, 3, False, {"hw.sensor_location", "hw.limit_type"}),
    ("nvidia.gpu.temperature.margin", G, "Cel", D, 2, False, set()),
    (
        "nvidia.gpu.temperature.margin.limit",
        G,
        "Cel",
        STATIC,
        3,
        False,
        {"hw.sensor_location", "hw.limit_type"},
    ),
    ("hw.fan.speed_ratio", G, "1", D, 2, False, {"hw.sensor_location"}),
    ("nvidia.gpu.fan.speed.target", G, "rpm", D, 3, False, set()),
    ("nvidia.gpu.clock.frequency", G, "Hz", F, 2, False, {"nvidia.gpu.clock.domain"}),
    ("nvidia.gpu.clock.limit", G, "Hz", STATIC, 3, False, {"nvidia.gpu.clock.domain"}),
    ("nvidia.gpu.performance_state", G, "{pstate}", F, 3, False, set()),
    ("nvidia.gpu.clock.reason.status", U, "1", F, 3, False, {"nvidia.gpu.clock.reason"}),
    ("nvidia.gpu.clock.reason.time", C, "s", D, 2, False, {"nvidia.gpu.clock.reason"}),
    ("nvidia.gpu.pcie.throughput", G, "By/s", D, 9, False, {"network.io.direction"}),
    ("nvidia.gpu.pcie.link.generation", G, "{generation}", S, 2, False, set()),
    ("nvidia.gpu.pcie.link.width", G, "{lane}", S, 2, False, set()),
    ("nvidia.gpu.pcie.link.max_generation", G, "{generation}", S, 3, False, set()),
    ("nvidia.gpu.pcie.link.max_width", G, "{lane}", S, 3, False, set()),
    ("nvidia.gpu.pcie.replays", C, "{replay}", D, 2, False, set()),
    ("nvidia.gpu.pcie.errors", C, "{error}", S, 2, False, {"error.type"}),
    (
        "nvidia.gpu.info",
        U,
        "{gpu}",
        STATIC,
        1,
        False,
        {
            "hw.model",
            "hw.vendor",
            "hw.serial_number",
            "hw.driver_version",
            "hw.bios_version",
            "hw.firmware_version",
            "nvidia.gpu.index",
            "nvidia.gpu.pci.address",
            "nvidia.gpu.architecture",
            "nvidia.gpu.compute_capability",
            "nvidia.gpu.board.part_number",
        },
    ),
]

AGENT: list[tuple[str, Kind, str]] = [
    ("nvidia.gpu.allocation", U, "{gpu}"),
    ("otel_gpu.nvml.up", U, "1"),
    ("otel_gpu.nvml.hung", U, "1"),
    ("otel_gpu.device.up", U, "1"),
    ("otel_gpu.reading.missing", U, "{reading}"),
    ("otel_gpu.sweep.duration", H, "s"),
    ("otel_gpu.sweep.age", G, "s"),
    ("otel_gpu.sweep.late", C, "{sweep}"),
    ("otel_gpu.worker.restarts", C, "{restart}"),
    ("otel_gpu.attribution.up", U, "1"),
    ("otel_gpu.scrape.duration", H, "s"),
    ("otel.sdk.exporter.metric_data_point.exported", C, "{data_point}"),
    ("otel.sdk.exporter.operation.duration", H, "s"),
    ("process.memory.usage", U, "By"),
    ("process.cpu.time", C, "s"),
]

BRANCHES = {
    # (metric, attribute's value): the smallest profile in which the point is there
    ("hw.gpu.utilization", "general"): 1,
    ("hw.gpu.utilization", "encoder"): 3,
    ("hw.gpu.utilization", "decoder"): 3,
    ("hw.gpu.utilization", "jpeg"): 3,
    ("hw.gpu.utilization", "ofa"): 3,
    ("nvidia.gpu.power.limit", "enforced"): 2,
    ("nvidia.gpu.power.limit", "requested"): 3,
    ("nvidia.gpu.power.limit", "default"): 3,
    ("nvidia.gpu.power.limit", "min"): 3,
    ("nvidia.gpu.power.limit", "max"): 3,
    ("nvidia.gpu.clock.frequency", "sm"): 2,
    ("nvidia.gpu.clock.frequency", "memory"): 2,
    ("nvidia.gpu.clock.frequency", "graphics"): 3,
    ("nvidia.gpu.clock.frequency", "video"): 3,
    ("nvidia.gpu.pcie.errors", "correctable"): 2,
    ("nvidia.gpu.pcie.errors", "non_fatal"): 2,
    ("nvidia.gpu.pcie.errors", "fatal"): 2,
    ("nvidia.gpu.pcie.errors", "bad_tlp"): 3,
    ("nvidia.gpu.pcie.errors", "replay_rollover"): 3,
}

CONSTANT = {"hw.power": (("hw.type", "gpu"),), "hw.energy": (("hw.type", "gpu"),)}

INSTANCES = {
    "hw.gpu.memory.usage",
    "hw.gpu.memory.limit",
    "hw.gpu.memory.utilization",
    "nvidia.gpu.memory.free",
    "nvidia.gpu.memory.reserved",
    "nvidia.gpu.info",
}

RECORDS = {metric.name: metric for metric in CATALOG}


def profiles(metric: Metric, value: str) -> int:
    """Find the smallest profile of which a point with this attribute value is part."""
    for profile in (Profile.CORE, Profile.STANDARD, Profile.FULL):
        part = metric.read.at(profile) if metric.profile <= profile else None
        gaps = part.read(gpu(), {})[1] if part else []
        if value in {said for gap in gaps for _, said in gap.attributes}:
            return profile
    return Profile.OFF


@pytest.mark.parametrize("row", DESIGN, ids=lambda row: row[0])
def test_a_record_is_as_it_was_designed(row: Row) -> None:
    name, kind, unit, tier, profile, owner, attributes = row
    metric = RECORDS[name]
    assert (metric.kind, metric.unit, metric.tier) == (kind, unit, tier)
    assert (metric.profile, metric.owner) == (profile, owner)
    assert set(metric.attributes) == attributes
    assert metric.constant == CONSTANT.get(name, ())


@pytest.mark.parametrize(("name", "kind", "unit"), AGENT)
def test_what_the_agent_tells_of_itself_is_as_it_was_designed(
    name: str, kind: Kind, unit: str
) -> None:
    metric = RECORDS[name]
    assert (metric.kind, metric.unit) == (kind, unit)
    assert isinstance(metric.read, Supplied)
    assert not metric.owner


@pytest.mark.parametrize(("name", "value"), BRANCHES)
def test_a_point_is_in_the_profile_that_it_was_designed_for(name: str, value: str) -> None:
    assert profiles(RECORDS[name], value) == BRANCHES[name, value]


def test_instances_have_memory_and_identity_and_the_rest_is_their_gpus() -> None:
    found = {row[0] for row in DESIGN if RECORDS[row[0]].on_instance}
    assert found == INSTANCES


def test_counts_and_bytes_are_integers_and_measures_are_not() -> None:
    for metric in CATALOG:
        whole = metric.unit.startswith("{") or metric.unit == "By" or metric.kind is U
        assert metric.integer == whole, metric.name


def test_a_series_of_the_agent_is_never_in_the_namespace_of_the_gpus() -> None:
    for metric in CATALOG:
        if isinstance(metric.read, Supplied):
            assert not metric.name.startswith("hw.")
