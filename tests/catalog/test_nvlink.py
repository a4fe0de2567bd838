"""NVLink and the fabric: states, faults and rates, as nvml.h writes them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.catalog.nvlink import BIT_ERROR_RATES, FABRIC, P2P, checked
from otel_gpu.model import Query, Reason
from tests.catalog.world import ALL_LINKS, BLACKWELL, HOPPER, WORLD, World, field, lacking, told

STATUS, FAULT, STATE = (
    "nvidia.gpu.fabric.status",
    "nvidia.gpu.fabric.fault",
    ("nvidia.gpu.nvlink.link.status"),
)


def links(*states: int) -> dict[Query, int]:
    return {field(165, number): state for number, state in enumerate(states)}


class TestLinks:
    def test_each_state_is_there_also_when_no_link_is_in_it(self) -> None:
        device = replace(HOPPER, nvlinks=3)
        found = told(STATE, links(1, 1, 0), device)
        assert {attributes[0][1]: value for attributes, value in found.items()} == {
            "inactive": 1,
            "active": 2,
            "sleep": 0,
            "disabled": 0,
        }

    def test_a_state_of_tomorrow_is_told_by_its_number(self) -> None:
        found = told(STATE, links(1, 9), replace(HOPPER, nvlinks=2))
        assert found[(("nvidia.gpu.nvlink.link.state", "9"),)] == 1
        assert sum(found.values()) == 2

    @pytest.mark.parametrize(
        "name",
        [
            "nvidia.gpu.nvlink.io",
            "nvidia.gpu.nvlink.throughput",
            "nvidia.gpu.nvlink.errors",
            "nvidia.gpu.nvlink.link.status",
            "nvidia.gpu.nvlink.bandwidth",
        ],
    )
    def test_a_gpu_without_links_has_no_0_in_their_place(self, name: str) -> None:
        """GPM answers 0.0 for what is not there."""
        alone = replace(HOPPER, nvlinks=0)
        assert told(name, WORLD, alone) == {}
        assert {gap.reason for gap in lacking(name, WORLD, alone)} == {Reason.UNSUPPORTED}

    def test_a_gpu_without_a_link_to_its_cpu_has_no_0_in_its_place(self) -> None:
        apart = replace(HOPPER, c2c=False)
        assert told("nvidia.gpu.c2c.throughput", WORLD, apart) == {}
        assert lacking("nvidia.gpu.c2c.throughput", WORLD, apart)

    def test_more_bytes_than_any_memory_has_are_counted_all_the_same(self) -> None:
        world = WORLD | {field(138, ALL_LINKS): 2**45, field(139, ALL_LINKS): 2**50}
        assert sorted(told("nvidia.gpu.nvlink.io", world).values()) == [2**55, 2**60]

    def test_errors_of_nvlink_5_are_not_asked_of_older_ones_nor_the_other_way_round(self) -> None:
        kinds = {
            device.architecture: {
                attributes[0][1] for attributes in told("nvidia.gpu.nvlink.errors", WORLD, device)
            }
            for device in (HOPPER, BLACKWELL)
        }
        assert kinds["Hopper"] == {"replay", "recovery", "crc"}
        assert "replay" not in kinds["Blackwell"]
        assert len(kinds["Blackwell"]) == 10


class TestBitErrorRate:
    @pytest.mark.parametrize(
        ("raw", "rate"), [(0x10F, 1e-15), (0x90C, 9e-12), (0, 0.0), (0x3FF, 3e-255), (0x100, 1.0)]
    )
    def test_mantissa_and_exponent_are_decoded(self, raw: int, rate: float) -> None:
        world = dict.fromkeys(BIT_ERROR_RATES.values(), raw)
        found = told("nvidia.gpu.nvlink.bit_error_rate", world, BLACKWELL)
        assert [*found.values()] == pytest.approx([rate, rate])

    def test_more_errors_than_bits_are_a_gap(self) -> None:
        world = dict.fromkeys(BIT_ERROR_RATES.values(), 0x200)
        assert told("nvidia.gpu.nvlink.bit_error_rate", world, BLACKWELL) == {}


class TestPeers:
    NAME = "nvidia.gpu.p2p.status"

    def test_a_gpu_that_is_alone_has_no_peer(self) -> None:
        world: World = {query: {} for query in P2P.values()}
        assert told(self.NAME, world) == {}
        (gap,) = lacking(self.NAME, world)
        assert (gap.reason, gap.detail) == (Reason.UNSUPPORTED, "this GPU has no peer")

    @pytest.mark.parametrize("value", [None, [0, 0], 5, {"GPU-1": None}, {"GPU-1": "0"}], ids=str)
    def test_what_is_no_status_of_peers_is_a_gap(self, value: object) -> None:
        world = dict.fromkeys(P2P.values(), value)
        assert told(self.NAME, world) == {}
        assert [gap.reason for gap in lacking(self.NAME, world)] == [Reason.INVALID]


class TestFabric:
    def test_a_state_of_tomorrow_is_told_by_its_number(self) -> None:
        found = told(STATUS, {FABRIC: {"state": 9, "healthMask": 0}})
        assert found[(("nvidia.gpu.fabric.state", "9"),)] == 1
        assert sum(found.values()) == 1

    @pytest.mark.parametrize(
        ("mask", "faults"),
        [
            (0b01, {"degraded_bandwidth": True}),
            (0b10, {"degraded_bandwidth": False}),
            (0b01 << 2, {"route_recovery": True}),
            (0b01 << 4, {"route_unhealthy": True}),
            (0b01 << 6, {"access": True}),
            (1 << 8, {"configuration": False}),
            (2 << 8, {"configuration": True}),
            (8 << 8, {"configuration": True}),
            (1 << 12, {}),
            (0, {}),
        ],
    )
    def test_each_check_stands_where_nvml_h_says(self, mask: int, faults: dict[str, bool]) -> None:
        assert checked(mask) == faults
        world = {FABRIC: {"state": 3, "healthMask": mask}}
        assert {
            str(attributes[0][1]): bool(value) for attributes, value in told(FAULT, world).items()
        } == faults

    def test_where_no_check_is_made_there_is_a_gap_and_no_0(self) -> None:
        world = {FABRIC: {"state": 1, "healthMask": 0}}
        assert [gap.reason for gap in lacking(FAULT, world)] == [Reason.UNSUPPORTED]

    @pytest.mark.parametrize("value", [None, {}, {"state": None, "healthMask": 2**32 - 1}, [3]])
    def test_what_makes_no_sense_is_a_gap(self, value: object) -> None:
        for name in (STATUS, FAULT):
            assert told(name, {FABRIC: value}) == {}
            assert [gap.reason for gap in lacking(name, {FABRIC: value})] == [Reason.INVALID]

    @given(st.integers(0, 2**32 - 1))
    def test_any_mask_is_some_checks_and_some_faults(self, mask: int) -> None:
        assert set(checked(mask)) <= {
            "degraded_bandwidth",
            "route_recovery",
            "route_unhealthy",
            "access",
            "configuration",
        }
