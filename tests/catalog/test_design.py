"""The records keep to the design: written down here by hand, so that no record can move silently.

Dashboards and alerts of users hang on these words. A record may be added; to change one is to
change this table, and the changelog.
"""

import pytest

from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.forms import Supplied
from otel_gpu.model import Kind, Metric, Profile, Tier
from tests.catalog.world import HOPPER

G, C, U, H = Kind.GAUGE, Kind.COUNTER, Kind.UPDOWNCOUNTER, Kind.HISTOGRAM
F, D, S, STATIC = Tier.FAST, Tier.DEFAULT, Tier.SLOW, Tier.STATIC

Row = tuple[str, Kind, str, Tier, int, bool, set[str]]

DESIGN: list[Row] = [
    # name, instrument, UCUM unit, tier, smallest profile, owner's attributes, attributes
    ("hw.gpu.utilization", G, "1", F, 1, True, {"hw.gpu.task"}),
    ("nvidia.gpu.memory_controller.utilization", G, "1", F, 2, True, set()),
    ("nvidia.gpu.sm.utilization", G, "1", F, 2, True, set()),
    ("nvidia.gpu.sm.occupancy", G, "1", F, 2, True, set()),
    ("nvidia.gpu.dram.utilization", G, "1", F, 2, True, set()),
    ("nvidia.gpu.engine.utilization", G, "1", F, 2, True, {"nvidia.gpu.engine"}),
    ("nvidia.gpu.pipe.utilization", G, "1", F, 2, True, {"nvidia.gpu.pipe"}),
    ("nvidia.gpu.engine.time", C, "s", F, 2, False, {"nvidia.gpu.engine"}),
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
    ("hw.gpu.io", C, "By", F, 2, False, {"network.io.direction"}),
    ("nvidia.gpu.pcie.throughput", G, "By/s", D, 3, False, {"network.io.direction"}),
    ("nvidia.gpu.pcie.link.generation", G, "{generation}", S, 2, False, set()),
    ("nvidia.gpu.pcie.link.width", G, "{lane}", S, 2, False, set()),
    ("nvidia.gpu.pcie.link.max_generation", G, "{generation}", S, 3, False, set()),
    ("nvidia.gpu.pcie.link.max_width", G, "{lane}", S, 3, False, set()),
    ("nvidia.gpu.pcie.replays", C, "{replay}", D, 2, False, set()),
    ("nvidia.gpu.pcie.errors", C, "{error}", S, 2, False, {"error.type"}),
    ("nvidia.gpu.nvlink.io", C, "By", D, 2, False, {"network.io.direction"}),
    ("nvidia.gpu.nvlink.throughput", G, "By/s", F, 3, False, {"network.io.direction"}),
    ("nvidia.gpu.nvlink.errors", C, "{error}", S, 2, False, {"error.type"}),
    ("nvidia.gpu.nvlink.recoveries", C, "{event}", S, 3, False, set()),
    ("nvidia.gpu.nvlink.bit_error_rate", G, "1", S, 3, False, {"nvidia.gpu.nvlink.rate"}),
    ("nvidia.gpu.nvlink.link.status", U, "{link}", S, 2, False, {"nvidia.gpu.nvlink.link.state"}),
    ("nvidia.gpu.nvlink.bandwidth", G, "By/s", S, 3, False, set()),
    (
        "nvidia.gpu.p2p.status",
        U,
        "1",
        S,
        3,
        False,
        {"nvidia.gpu.peer.id", "nvidia.gpu.p2p.capability"},
    ),
    ("nvidia.gpu.c2c.throughput", G, "By/s", F, 3, False, {"network.io.direction"}),
    ("nvidia.gpu.fabric.status", U, "1", S, 2, False, {"nvidia.gpu.fabric.state"}),
    ("nvidia.gpu.fabric.fault", U, "1", S, 3, False, {"nvidia.gpu.fabric.check"}),
    ("hw.errors", C, "{error}", D, 1, False, {"error.type"}),
    (
        "nvidia.gpu.ecc.errors",
        C,
        "{error}",
        S,
        3,
        False,
        {"error.type", "nvidia.gpu.memory.location"},
    ),
    (
        "nvidia.gpu.ecc.lifetime_errors",
        C,
        "{error}",
        S,
        2,
        False,
        {"error.type", "nvidia.gpu.memory.location"},
    ),
    ("nvidia.gpu.ecc.sram.errors", C, "{error}", S, 3, False, {"nvidia.gpu.sram.source"}),
    ("nvidia.gpu.ecc.sram.threshold_exceeded", U, "1", S, 2, False, set()),
    ("nvidia.gpu.row_remap.rows", C, "{row}", S, 2, False, {"error.type"}),
    ("nvidia.gpu.row_remap.pending", U, "1", S, 2, False, set()),
    ("nvidia.gpu.row_remap.failed", U, "1", S, 2, False, set()),
    (
        "nvidia.gpu.row_remap.bank.status",
        U,
        "{bank}",
        S,
        3,
        False,
        {"nvidia.gpu.row_remap.bank.state"},
    ),
    (
        "nvidia.gpu.page_retirement.pages",
        C,
        "{page}",
        S,
        2,
        False,
        {"nvidia.gpu.page_retirement.cause"},
    ),
    ("nvidia.gpu.page_retirement.pending", U, "1", S, 2, False, set()),
    (
        "nvidia.gpu.memory.repair.pending",
        U,
        "1",
        S,
        2,
        False,
        {"nvidia.gpu.memory.repair.target"},
    ),
    ("nvidia.gpu.memory.unrepairable", U, "1", S, 2, False, set()),
    ("hw.status", U, "1", D, 1, False, {"hw.state"}),
    ("nvidia.gpu.recovery.status", U, "1", D, 3, False, {"nvidia.gpu.recovery.action"}),
    ("nvidia.gpu.persistence.enabled", U, "1", S, 2, False, set()),
    ("nvidia.gpu.ecc.enabled", U, "1", S, 2, False, set()),
    ("nvidia.gpu.mig.enabled", U, "1", S, 2, False, set()),
    ("nvidia.gpu.ecc.change_pending", U, "1", S, 3, False, set()),
    ("nvidia.gpu.mig.change_pending", U, "1", S, 3, False, set()),
    ("nvidia.gpu.compute_mode.status", U, "1", S, 3, False, {"nvidia.gpu.compute_mode.state"}),
    ("nvidia.gpu.vgpu.licensed", U, "1", S, 3, False, set()),
    (
        "nvidia.gpu.process.memory.usage",
        U,
        "By",
        D,
        9,
        True,
        {"process.pid", "process.executable.name", "nvidia.gpu.process.type"},
    ),
    (
        "nvidia.gpu.process.utilization",
        G,
        "1",
        D,
        9,
        True,
        {"process.pid", "process.executable.name", "nvidia.gpu.engine"},
    ),
    ("nvidia.gpu.process.active", U, "{process}", D, 2, False, {"nvidia.gpu.process.type"}),
    ("nvidia.gpu.encoder.session.active", U, "{session}", D, 3, False, set()),
    ("nvidia.gpu.encoder.frames", G, "{frame}/s", D, 3, False, set()),
    ("nvidia.gpu.encoder.latency", G, "s", D, 3, False, set()),
    ("nvidia.gpu.capture.session.active", U, "{session}", D, 3, False, set()),
    ("otel_gpu.gpm.uncovered.time", C, "s", F, 2, False, set()),
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
    ("nvidia.gpu.xid.errors", C, "{error}"),
    ("nvidia.gpu.xid.code.errors", C, "{error}"),
    ("nvidia.gpu.allocation", U, "{gpu}"),
    ("nvidia.gpu.workload.energy", C, "J"),
    ("nvidia.gpu.workload.time", C, "s"),
    ("otel_gpu.nvml.up", U, "1"),
    ("otel_gpu.nvml.hung", U, "1"),
    ("otel_gpu.device.up", U, "1"),
    ("otel_gpu.reading.missing", U, "{reading}"),
    ("otel_gpu.sweep.duration", H, "s"),
    ("otel_gpu.sweep.age", G, "s"),
    ("otel_gpu.sweep.late", C, "{sweep}"),
    ("otel_gpu.worker.restarts", C, "{restart}"),
    ("otel_gpu.config.reloads", C, "{reload}"),
    ("otel_gpu.series.dropped", C, "{series}"),
    ("otel_gpu.log.suppressed", C, "{line}"),
    ("otel_gpu.attribution.up", U, "1"),
    ("otel_gpu.attribution.held", G, "s"),
    ("otel_gpu.scrape.duration", H, "s"),
    ("otel.sdk.exporter.metric_data_point.exported", C, "{data_point}"),
    ("otel.sdk.exporter.operation.duration", H, "s"),
    ("process.memory.usage", U, "By"),
    ("process.cpu.time", C, "s"),
    ("otel_gpu.build.info", U, "{agent}"),
]

BRANCHES = {
    # (metric, attribute's value): the smallest profile in which the point is there
    ("hw.gpu.utilization", "general"): 1,
    ("hw.gpu.utilization", "encoder"): 3,
    ("hw.gpu.utilization", "decoder"): 3,
    ("hw.gpu.utilization", "jpeg"): 3,
    ("hw.gpu.utilization", "ofa"): 3,
    ("nvidia.gpu.engine.utilization", "graphics"): 2,
    ("nvidia.gpu.engine.utilization", "nvdec6"): 3,
    ("nvidia.gpu.engine.utilization", "nvenc0"): 3,
    ("nvidia.gpu.engine.utilization", "nvjpg2"): 3,
    ("nvidia.gpu.engine.utilization", "nvofa0"): 3,
    ("nvidia.gpu.pipe.utilization", "tensor"): 2,
    ("nvidia.gpu.pipe.utilization", "tensor_dfma"): 3,
    ("nvidia.gpu.pipe.utilization", "tensor_hmma"): 3,
    ("nvidia.gpu.pipe.utilization", "tensor_dmma"): 3,
    ("nvidia.gpu.pipe.utilization", "tensor_imma"): 3,
    ("nvidia.gpu.pipe.utilization", "fp64"): 3,
    ("nvidia.gpu.pipe.utilization", "fp32"): 3,
    ("nvidia.gpu.pipe.utilization", "fp16"): 3,
    ("nvidia.gpu.pipe.utilization", "integer"): 3,
    ("nvidia.gpu.engine.time", "graphics"): 2,
    ("nvidia.gpu.engine.time", "sm"): 2,
    ("nvidia.gpu.engine.time", "tensor"): 2,
    ("nvidia.gpu.engine.time", "dram"): 2,
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
    ("nvidia.gpu.pcie.errors", "naks_received"): 3,
    ("nvidia.gpu.pcie.errors", "receiver"): 3,
    ("nvidia.gpu.pcie.errors", "bad_tlp"): 3,
    ("nvidia.gpu.pcie.errors", "naks_sent"): 3,
    ("nvidia.gpu.pcie.errors", "bad_dllp"): 3,
    ("nvidia.gpu.pcie.errors", "unsupported_request"): 3,
    ("nvidia.gpu.pcie.errors", "lcrc"): 3,
    ("nvidia.gpu.pcie.errors", "lane"): 3,
    ("nvidia.gpu.pcie.errors", "l0_to_recovery"): 3,
    ("nvidia.gpu.pcie.errors", "replay_rollover"): 3,
}

CONSTANT = dict.fromkeys(("hw.power", "hw.energy", "hw.errors", "hw.status"), (("hw.type", "gpu"),))

WRAPS = {"nvidia.gpu.pcie.replays": 2**32, "nvidia.gpu.pcie.errors": 2**32}

INSTANCES = {
    "hw.gpu.memory.usage",
    "hw.gpu.memory.limit",
    "hw.gpu.memory.utilization",
    "nvidia.gpu.memory.free",
    "nvidia.gpu.memory.reserved",
    "nvidia.gpu.info",
    "nvidia.gpu.sm.utilization",
    "nvidia.gpu.sm.occupancy",
    "nvidia.gpu.dram.utilization",
    "nvidia.gpu.engine.utilization",
    "nvidia.gpu.pipe.utilization",
    "nvidia.gpu.engine.time",
    "nvidia.gpu.process.memory.usage",
    "nvidia.gpu.process.active",
}

RECORDS = {metric.name: metric for metric in CATALOG}


def profiles(metric: Metric, value: str) -> int:
    """Find the smallest profile of which a point with this attribute value is part."""
    for profile in (Profile.CORE, Profile.STANDARD, Profile.FULL):
        part = metric.read.at(profile) if metric.profile <= profile else None
        gaps = part.read(HOPPER, {})[1] if part else []
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
    assert metric.wraps == WRAPS.get(name, 0)


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


def test_instances_have_what_the_driver_tells_of_them_and_the_rest_is_their_gpus() -> None:
    found = {row[0] for row in DESIGN if RECORDS[row[0]].on_instance}
    assert found == INSTANCES


def test_counts_and_bytes_are_integers_and_measures_are_not() -> None:
    for metric in CATALOG:
        counted = metric.unit.startswith("{") and not metric.unit.endswith("/s")
        whole = counted or metric.unit == "By" or metric.kind is U
        assert metric.integer == whole, metric.name


def test_a_series_of_the_agent_is_never_in_the_namespace_of_the_gpus() -> None:
    for metric in CATALOG:
        if isinstance(metric.read, Supplied):
            assert not metric.name.startswith("hw.")
