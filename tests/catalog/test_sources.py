"""What NVML gives, point by point: which function, field and member each value must come from.

The rows are written by hand (`points.py`), and so are the answers (`world.py`).
"""

from dataclasses import replace

import pytest

from otel_gpu.model import Attributes, Device, Query, Reason
from tests.catalog.points import FALLBACKS, OTHERS, POINTS, REASON, SENSOR
from tests.catalog.world import A100, HOPPER, WORLD, lacking, told

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


@pytest.mark.parametrize(("name", "attributes", "value"), POINTS, ids=str)
def test_a_point_comes_from_its_source(name: str, attributes: Attributes, value: float) -> None:
    assert told(name, WORLD)[attributes] == value


@pytest.mark.parametrize("name", sorted({name for name, _, _ in POINTS}))
def test_there_is_no_point_that_is_not_written_down_here(name: str) -> None:
    assert set(told(name, WORLD)) == {row[1] for row in POINTS if row[0] == name}


@pytest.mark.parametrize(("device", "name", "attributes", "value"), OTHERS, ids=str)
def test_a_point_of_another_generation_comes_from_its_source(
    device: Device, name: str, attributes: Attributes, value: float
) -> None:
    assert told(name, WORLD, device)[attributes] == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("device", "name"), {(device, name): None for device, name, _, _ in OTHERS}, ids=str
)
def test_another_generation_has_no_point_that_is_not_written_down_here(
    device: Device, name: str
) -> None:
    written = {row[2] for row in OTHERS if row[:2] == (device, name)}
    assert set(told(name, WORLD, device)) == written


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
