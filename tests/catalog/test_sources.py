"""What NVML gives, point by point: which function, field and member each value must come from.

Written by hand from nvml.h, so that a record which asks for its neighbour is found out. The world
below answers everything, with numbers of which there is only one each.
"""

from dataclasses import replace
from typing import Any

import pytest

from otel_gpu.catalog import CATALOG
from otel_gpu.ledger import Batch, Page, fold
from otel_gpu.model import Answer, Attributes, Code, Device, Missing, Query, Reason
from tests.machine import gpu

FIELD = "nvmlDeviceGetFieldValues"
HOPPER = replace(gpu(), fans=2)
A100 = replace(gpu(), architecture="Ampere", compute_capability="8.0")
RECORDS = {metric.name: metric for metric in CATALOG}

World = dict[Query, Any]
Row = tuple[str, Attributes, float]


def field(number: int, scope: int = 0) -> Query:
    return Query(FIELD, (number, scope))


WORLD: World = {
    Query("nvmlDeviceGetUtilizationRates"): {"gpu": 57, "memory": 29},
    Query("nvmlDeviceGetEncoderUtilization"): [11, 100_000],
    Query("nvmlDeviceGetDecoderUtilization"): [13, 100_001],
    Query("nvmlDeviceGetJpgUtilization"): [17, 100_002],
    Query("nvmlDeviceGetOfaUtilization"): [19, 100_003],
    Query("nvmlDeviceGetMemoryInfo_v2"): {
        "version": 33554472,
        "total": 1000,
        "used": 431,
        "free": 337,
        "reserved": 232,
    },
    Query("nvmlDeviceGetBAR1MemoryInfo"): {"bar1Total": 809, "bar1Used": 211, "bar1Free": 598},
    Query("nvmlDeviceGetPowerUsage"): 612_347,
    field(185): 601_349,
    field(186): 699_353,
    field(185, 2): 88_359,
    Query("nvmlDeviceGetTotalEnergyConsumption"): 9_876_543_211,
    field(187): 200_003,
    field(188): 700_001,
    field(189): 650_011,
    field(190): 550_007,
    field(192): 500_009,
    Query("nvmlDeviceGetEnforcedPowerLimit"): 550_021,
    Query("nvmlDeviceGetPowerManagementLimit"): 500_023,
    Query("nvmlDeviceGetPowerManagementDefaultLimit"): 650_027,
    Query("nvmlDeviceGetTemperatureV", (0,)): 61,
    Query("nvmlDeviceGetTemperature", (0,)): 62,
    field(82): 71,
    Query("nvmlDeviceGetTemperatureThreshold", (0,)): 99,
    Query("nvmlDeviceGetTemperatureThreshold", (1,)): 95,
    Query("nvmlDeviceGetTemperatureThreshold", (2,)): 105,
    Query("nvmlDeviceGetTemperatureThreshold", (3,)): 87,
    Query("nvmlDeviceGetMarginTemperature"): 26,
    field(193): -8,
    field(194): -2,
    field(195): 3,
    field(196): 1,
    Query("nvmlDeviceGetFanSpeed_v2", (0,)): 31,
    Query("nvmlDeviceGetFanSpeed_v2", (1,)): 130,
    Query("nvmlDeviceGetFanSpeedRPM"): 2999,
    Query("nvmlDeviceGetClockInfo", (0,)): 1755,
    Query("nvmlDeviceGetClockInfo", (1,)): 1770,
    Query("nvmlDeviceGetClockInfo", (2,)): 3201,
    Query("nvmlDeviceGetClockInfo", (3,)): 1545,
    Query("nvmlDeviceGetMaxClockInfo", (0,)): 1980,
    Query("nvmlDeviceGetMaxClockInfo", (1,)): 1985,
    Query("nvmlDeviceGetMaxClockInfo", (2,)): 3203,
    Query("nvmlDeviceGetMaxClockInfo", (3,)): 1605,
    Query("nvmlDeviceGetPerformanceState"): 2,
    Query("nvmlDeviceGetCurrentClocksEventReasons"): 0x4 | 0x40,
    Query("nvmlDeviceGetSupportedClocksEventReasons"): 0x1FF,
    field(74): 7_930_000_001,
    field(76): 76_000_003,
    field(77): 77_000_007,
    field(269): 269_000_009,
    field(270): 270_000_011,
    field(271): 271_000_013,
    Query("nvmlDeviceGetPcieThroughput", (0,)): 7001,
    Query("nvmlDeviceGetPcieThroughput", (1,)): 9001,
    Query("nvmlDeviceGetCurrPcieLinkGeneration"): 4,
    Query("nvmlDeviceGetCurrPcieLinkWidth"): 8,
    Query("nvmlDeviceGetMaxPcieLinkGeneration"): 5,
    Query("nvmlDeviceGetMaxPcieLinkWidth"): 16,
    Query("nvmlDeviceGetPcieReplayCounter"): 1201,
    **{field(number): 1000 + number for number in (95, 169, *range(173, 184))},
}

DIRECTION, DOMAIN, ERROR, LIMIT, REASON, SENSOR, TASK = (
    "network.io.direction",
    "nvidia.gpu.clock.domain",
    "error.type",
    "hw.limit_type",
    "nvidia.gpu.clock.reason",
    "hw.sensor_location",
    "hw.gpu.task",
)

POINTS: list[Row] = [
    ("hw.gpu.utilization", ((TASK, "general"),), 0.57),
    ("hw.gpu.utilization", ((TASK, "encoder"),), 0.11),
    ("hw.gpu.utilization", ((TASK, "decoder"),), 0.13),
    ("hw.gpu.utilization", ((TASK, "jpeg"),), 0.17),
    ("hw.gpu.utilization", ((TASK, "ofa"),), 0.19),
    ("nvidia.gpu.memory_controller.utilization", (), 0.29),
    ("hw.gpu.memory.usage", (), 431),
    ("hw.gpu.memory.limit", (), 1000),
    ("hw.gpu.memory.utilization", (), 0.431),
    ("nvidia.gpu.memory.free", (), 337),
    ("nvidia.gpu.memory.reserved", (), 232),
    ("nvidia.gpu.bar1.usage", (), 211),
    ("nvidia.gpu.bar1.limit", (), 809),
    ("hw.power", (), 699.353),
    ("nvidia.gpu.power.average", (), 601.349),
    ("nvidia.gpu.memory.power", (), 88.359),
    ("hw.energy", (), 9_876_543.211),
    ("nvidia.gpu.power.limit", ((LIMIT, "enforced"),), 550.007),
    ("nvidia.gpu.power.limit", ((LIMIT, "requested"),), 500.009),
    ("nvidia.gpu.power.limit", ((LIMIT, "default"),), 650.011),
    ("nvidia.gpu.power.limit", ((LIMIT, "min"),), 200.003),
    ("nvidia.gpu.power.limit", ((LIMIT, "max"),), 700.001),
    ("hw.temperature", ((SENSOR, "gpu"),), 61),
    ("hw.temperature", ((SENSOR, "memory"),), 71),
    ("hw.temperature.limit", ((SENSOR, "gpu"), (LIMIT, "high.critical")), 99),
    ("hw.temperature.limit", ((SENSOR, "gpu"), (LIMIT, "throttled")), 95),
    ("hw.temperature.limit", ((SENSOR, "gpu"), (LIMIT, "max")), 87),
    ("hw.temperature.limit", ((SENSOR, "memory"), (LIMIT, "max")), 105),
    ("nvidia.gpu.temperature.margin", (), 26),
    ("nvidia.gpu.temperature.margin.limit", ((SENSOR, "gpu"), (LIMIT, "high.critical")), -8),
    ("nvidia.gpu.temperature.margin.limit", ((SENSOR, "gpu"), (LIMIT, "throttled")), -2),
    ("nvidia.gpu.temperature.margin.limit", ((SENSOR, "gpu"), (LIMIT, "max")), 1),
    ("nvidia.gpu.temperature.margin.limit", ((SENSOR, "memory"), (LIMIT, "max")), 3),
    ("hw.fan.speed_ratio", ((SENSOR, "fan0"),), 0.31),
    ("hw.fan.speed_ratio", ((SENSOR, "fan1"),), 1.3),
    ("nvidia.gpu.fan.speed.target", (), 2999),
    ("nvidia.gpu.clock.frequency", ((DOMAIN, "graphics"),), 1_755_000_000),
    ("nvidia.gpu.clock.frequency", ((DOMAIN, "sm"),), 1_770_000_000),
    ("nvidia.gpu.clock.frequency", ((DOMAIN, "memory"),), 3_201_000_000),
    ("nvidia.gpu.clock.frequency", ((DOMAIN, "video"),), 1_545_000_000),
    ("nvidia.gpu.clock.limit", ((DOMAIN, "graphics"),), 1_980_000_000),
    ("nvidia.gpu.clock.limit", ((DOMAIN, "sm"),), 1_985_000_000),
    ("nvidia.gpu.clock.limit", ((DOMAIN, "memory"),), 3_203_000_000),
    ("nvidia.gpu.clock.limit", ((DOMAIN, "video"),), 1_605_000_000),
    ("nvidia.gpu.performance_state", (), 2),
    ("nvidia.gpu.clock.reason.status", ((REASON, "idle"),), 0),
    ("nvidia.gpu.clock.reason.status", ((REASON, "app_clocks"),), 0),
    ("nvidia.gpu.clock.reason.status", ((REASON, "sw_power_cap"),), 1),
    ("nvidia.gpu.clock.reason.status", ((REASON, "hw_slowdown"),), 0),
    ("nvidia.gpu.clock.reason.status", ((REASON, "sync_boost"),), 0),
    ("nvidia.gpu.clock.reason.status", ((REASON, "sw_thermal"),), 0),
    ("nvidia.gpu.clock.reason.status", ((REASON, "hw_thermal"),), 1),
    ("nvidia.gpu.clock.reason.status", ((REASON, "hw_power_brake"),), 0),
    ("nvidia.gpu.clock.reason.status", ((REASON, "display"),), 0),
    ("nvidia.gpu.clock.reason.time", ((REASON, "sw_power_cap"),), 7.930000001),
    ("nvidia.gpu.clock.reason.time", ((REASON, "sync_boost"),), 0.076000003),
    ("nvidia.gpu.clock.reason.time", ((REASON, "board_limit"),), 0.077000007),
    ("nvidia.gpu.clock.reason.time", ((REASON, "sw_thermal"),), 0.269000009),
    ("nvidia.gpu.clock.reason.time", ((REASON, "hw_thermal"),), 0.270000011),
    ("nvidia.gpu.clock.reason.time", ((REASON, "hw_power_brake"),), 0.271000013),
    # nvml.h counts from the GPU's side: transmit is out of it
    ("nvidia.gpu.pcie.throughput", ((DIRECTION, "transmit"),), 7_001_000),
    ("nvidia.gpu.pcie.throughput", ((DIRECTION, "receive"),), 9_001_000),
    ("nvidia.gpu.pcie.link.generation", (), 4),
    ("nvidia.gpu.pcie.link.width", (), 8),
    ("nvidia.gpu.pcie.link.max_generation", (), 5),
    ("nvidia.gpu.pcie.link.max_width", (), 16),
    ("nvidia.gpu.pcie.replays", (), 1201),
    ("nvidia.gpu.pcie.errors", ((ERROR, "replay_rollover"),), 1095),
    ("nvidia.gpu.pcie.errors", ((ERROR, "l0_to_recovery"),), 1169),
    ("nvidia.gpu.pcie.errors", ((ERROR, "correctable"),), 1173),
    ("nvidia.gpu.pcie.errors", ((ERROR, "naks_received"),), 1174),
    ("nvidia.gpu.pcie.errors", ((ERROR, "receiver"),), 1175),
    ("nvidia.gpu.pcie.errors", ((ERROR, "bad_tlp"),), 1176),
    ("nvidia.gpu.pcie.errors", ((ERROR, "naks_sent"),), 1177),
    ("nvidia.gpu.pcie.errors", ((ERROR, "bad_dllp"),), 1178),
    ("nvidia.gpu.pcie.errors", ((ERROR, "non_fatal"),), 1179),
    ("nvidia.gpu.pcie.errors", ((ERROR, "fatal"),), 1180),
    ("nvidia.gpu.pcie.errors", ((ERROR, "unsupported_request"),), 1181),
    ("nvidia.gpu.pcie.errors", ((ERROR, "lcrc"),), 1182),
    ("nvidia.gpu.pcie.errors", ((ERROR, "lane"),), 1183),
]

FALLBACKS: list[tuple[str, Attributes, Query, float]] = [
    # metric, attributes, the question that is refused, the value of the one that serves instead
    ("nvidia.gpu.power.average", (), field(185), 612.347),
    ("nvidia.gpu.power.limit", ((LIMIT, "enforced"),), field(190), 550.021),
    ("nvidia.gpu.power.limit", ((LIMIT, "requested"),), field(192), 500.023),
    ("nvidia.gpu.power.limit", ((LIMIT, "default"),), field(189), 650.027),
    ("hw.temperature", ((SENSOR, "gpu"),), Query("nvmlDeviceGetTemperatureV", (0,)), 62),
]

BITS = [
    (0x1, "idle"),
    (0x2, "app_clocks"),
    (0x4, "sw_power_cap"),
    (0x8, "hw_slowdown"),
    (0x10, "sync_boost"),
    (0x20, "sw_thermal"),
    (0x40, "hw_thermal"),
    (0x80, "hw_power_brake"),
    (0x100, "display"),
]
"""nvml.h, nvmlClocksEventReason*."""


def told(name: str, world: World, device: Device = HOPPER) -> dict[Attributes, float]:
    page = read(name, world, device)
    reading = page.readings.get(name)
    return {point.attributes: point.value for point in reading.points} if reading else {}


def lacking(name: str, world: World, device: Device = HOPPER) -> list[Missing]:
    return [gap.missing for gap in read(name, world, device).gaps.get(name, ())]


def read(name: str, world: World, device: Device) -> Page:
    """Read one metric in a world; what is not in it is not supported."""
    metric = RECORDS[name]
    heard = {query: Answer(Code.NOT_SUPPORTED) for query in metric.read.queries}
    heard |= {query: Answer(Code.SUCCESS, value) for query, value in world.items()}
    return fold(Page(), Batch(device, 1, 1.0, heard), [metric], 15.0)


@pytest.mark.parametrize(("name", "attributes", "value"), POINTS, ids=str)
def test_a_point_comes_from_its_source(name: str, attributes: Attributes, value: float) -> None:
    assert told(name, WORLD)[attributes] == value


@pytest.mark.parametrize("name", sorted({name for name, _, _ in POINTS}))
def test_there_is_no_point_that_is_not_written_down_here(name: str) -> None:
    assert set(told(name, WORLD)) == {row[1] for row in POINTS if row[0] == name}


@pytest.mark.parametrize(("name", "attributes", "without", "value"), FALLBACKS, ids=str)
def test_another_source_serves_where_the_first_does_not(
    name: str, attributes: Attributes, without: Query, value: float
) -> None:
    world = {query: answer for query, answer in WORLD.items() if query != without}
    assert told(name, world)[attributes] == value


class TestPower:
    USAGE = Query("nvmlDeviceGetPowerUsage")

    @pytest.mark.parametrize(
        ("architecture", "capability", "shown"),
        [
            ("Volta", "7.0", "hw.power"),
            ("Turing", "7.5", "hw.power"),
            ("Ampere", "8.0", "hw.power"),
            ("Ampere", "8.6", "nvidia.gpu.power.average"),
            ("Ada", "8.9", "nvidia.gpu.power.average"),
            ("Hopper", "9.0", "nvidia.gpu.power.average"),
            ("Blackwell", "10.0", "nvidia.gpu.power.average"),
        ],
    )
    def test_an_average_is_never_shown_as_the_power_of_this_moment(
        self, architecture: str, capability: str, shown: str
    ) -> None:
        device = replace(HOPPER, architecture=architecture, compute_capability=capability)
        world = {self.USAGE: 301_007}
        (other,) = {"nvidia.gpu.power.average", "hw.power"} - {shown}
        assert told(shown, world, device) == {(): 301.007}
        assert told(other, world, device) == {}
        assert [gap.reason for gap in lacking(other, world, device)] == [Reason.UNSUPPORTED]

    def test_the_field_wins_over_the_call_on_every_gpu(self) -> None:
        assert told("hw.power", WORLD, A100) == {(): 699.353}


class TestMemory:
    INFO = Query("nvmlDeviceGetMemoryInfo_v2")
    NAMES = tuple(
        row[0] for row in POINTS if row[0].startswith(("hw.gpu.mem", "nvidia.gpu.memory.f"))
    )

    @pytest.mark.parametrize("name", NAMES)
    def test_unified_memory_has_no_series_and_says_so(self, name: str) -> None:
        world = {self.INFO: {"total": 0, "used": 0, "free": 0, "reserved": 0}}
        assert told(name, world) == {}
        (gap,) = lacking(name, world)
        assert gap.reason is Reason.UNSUPPORTED
        assert "no memory of its own" in gap.detail

    @pytest.mark.parametrize("name", NAMES)
    def test_a_refusal_is_a_gap(self, name: str) -> None:
        assert [gap.reason for gap in lacking(name, {})] == [Reason.UNSUPPORTED]

    @pytest.mark.parametrize(
        "answer",
        [
            None,
            {},
            [1, 2],
            {"total": 1000},
            {"total": 2**64 - 1, "used": 2**64 - 1, "free": 2**64 - 1},
            {"total": "1000", "used": "1", "free": "2"},
        ],
        ids=str,
    )
    @pytest.mark.parametrize("name", ["hw.gpu.memory.usage", "hw.gpu.memory.utilization"])
    def test_an_answer_that_makes_no_sense_is_a_gap(self, name: str, answer: object) -> None:
        world = {self.INFO: answer}
        assert told(name, world) == {}
        assert [gap.reason for gap in lacking(name, world)] == [Reason.INVALID]

    def test_more_than_all_of_it_cannot_be_used(self) -> None:
        world = {self.INFO: {"total": 1000, "used": 1001}}
        assert [gap.reason for gap in lacking("hw.gpu.memory.utilization", world)] == [
            Reason.INVALID
        ]


class TestClockReasons:
    NAME = "nvidia.gpu.clock.reason.status"
    ACTIVE = Query("nvmlDeviceGetCurrentClocksEventReasons")
    OFFERED = Query("nvmlDeviceGetSupportedClocksEventReasons")
    OLD = (
        Query("nvmlDeviceGetCurrentClocksThrottleReasons"),
        Query("nvmlDeviceGetSupportedClocksThrottleReasons"),
    )

    @pytest.mark.parametrize(("bit", "reason"), BITS)
    def test_each_bit_is_its_reason(self, bit: int, reason: str) -> None:
        found = told(self.NAME, {self.ACTIVE: bit, self.OFFERED: 0x1FF})
        assert [key for key, value in found.items() if value] == [((REASON, reason),)]

    def test_what_the_gpu_does_not_report_is_left_out(self) -> None:
        found = told(self.NAME, {self.ACTIVE: 0x1FF, self.OFFERED: 0x5})
        assert found == {((REASON, "idle"),): 1, ((REASON, "sw_power_cap"),): 1}

    def test_a_gpu_that_reports_none_has_a_gap(self) -> None:
        world = {self.ACTIVE: 0, self.OFFERED: 0}
        assert told(self.NAME, world) == {}
        assert [gap.reason for gap in lacking(self.NAME, world)] == [Reason.UNSUPPORTED]

    def test_a_bit_that_nobody_knows_yet_makes_no_point(self) -> None:
        found = told(self.NAME, {self.ACTIVE: 0x1000, self.OFFERED: 0x1001})
        assert found == {((REASON, "idle"),): 0}

    def test_an_older_library_has_them_under_their_older_names(self) -> None:
        active, offered = self.OLD
        assert told(self.NAME, {active: 0x8, offered: 0x9}) == {
            ((REASON, "idle"),): 0,
            ((REASON, "hw_slowdown"),): 1,
        }

    @pytest.mark.parametrize("mask", [None, 4.0, "4", True, 2**64 - 1])
    def test_a_mask_that_is_none_is_a_gap(self, mask: object) -> None:
        for world in (
            {self.ACTIVE: mask, self.OFFERED: 0x1FF},
            {self.ACTIVE: 0x4, self.OFFERED: mask},
        ):
            assert told(self.NAME, world) == {}
            assert [gap.reason for gap in lacking(self.NAME, world)] == [Reason.INVALID]


class TestThermal:
    def test_a_fan_may_be_driven_above_its_nominal_speed_but_not_without_limit(self) -> None:
        fan = Query("nvmlDeviceGetFanSpeed_v2", (0,))
        device = replace(HOPPER, fans=1)
        assert told("hw.fan.speed_ratio", {fan: 200}, device) == {((SENSOR, "fan0"),): 2.0}
        assert told("hw.fan.speed_ratio", {fan: 201}, device) == {}

    def test_a_board_without_fans_says_so(self) -> None:
        (gap,) = lacking("hw.fan.speed_ratio", WORLD, replace(HOPPER, fans=0))
        assert (gap.reason, gap.detail) == (Reason.UNSUPPORTED, "this GPU has no fan")


class TestPerformanceState:
    def test_unknown_is_a_gap(self) -> None:
        """nvml.h, NVML_PSTATE_UNKNOWN is 32."""
        world = {Query("nvmlDeviceGetPerformanceState"): 32}
        assert told("nvidia.gpu.performance_state", world) == {}
        assert [gap.reason for gap in lacking("nvidia.gpu.performance_state", world)] == [
            Reason.INVALID
        ]
