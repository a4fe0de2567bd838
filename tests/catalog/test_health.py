"""The state of a GPU, judged by what the driver tells of it, the gravest first; and its modes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.catalog.errors import BANKS, SRAM
from otel_gpu.catalog.health import (
    ACTIONS,
    ECC_MODE,
    LICENCES,
    MIG_MODE,
    RECOVERY,
    REMAP_FAILED,
    REMAP_PENDING,
    REPAIR,
    UNREPAIRABLE,
)
from otel_gpu.catalog.judging import Judging
from otel_gpu.catalog.nvlink import FABRIC
from otel_gpu.ledger import Batch, Page, fold
from otel_gpu.model import Answer, Code, Query, Reason
from tests.catalog.world import HOPPER, NOW_NS, RECORDS, World, lacking, told

WELL: World = {
    RECOVERY: 0,
    REMAP_FAILED: 0,
    REMAP_PENDING: 0,
    BANKS: {"max": 3072, "high": 0, "partial": 0, "low": 0, "none": 0},
    SRAM: {"aggregateUncBucketL2": 3, "bThresholdExceeded": 0},
    UNREPAIRABLE: 0,
    REPAIR: [0, 0],
    FABRIC: {"state": 3, "status": 0, "healthMask": 2 | 2 << 2 | 2 << 4 | 2 << 6 | 1 << 8},
}
"""A GPU of which everything is known, and all is well (values as on a real H200)."""

FAILED: list[tuple[Query, Any]] = [(RECOVERY, action) for action in (1, 2, 4, 6, 7)]
PREDICTED: list[tuple[Query, Any]] = [
    (REMAP_FAILED, 1),
    (BANKS, {"max": 3071, "high": 0, "partial": 0, "low": 0, "none": 1}),
    (SRAM, {"aggregateUncBucketL2": 0, "bThresholdExceeded": 1}),
    (UNREPAIRABLE, 1),
]
DEGRADED: list[tuple[Query, Any]] = [
    (REMAP_PENDING, 1),
    (REPAIR, [1, 0]),
    (REPAIR, [0, 1]),
    *((FABRIC, {"state": 3, "healthMask": 1 << shift}) for shift in (0, 2, 4, 6)),
    *((FABRIC, {"state": 3, "healthMask": fault << 8}) for fault in (2, 3, 5, 8)),
    *((RECOVERY, action) for action in (3, 5)),
    (RECOVERY, 8),  # an action of tomorrow is an action
]
OK: list[tuple[Query, Any]] = [
    (BANKS, {"max": 1, "high": 5, "partial": 9, "low": 700, "none": 0}),
    (SRAM, {"aggregateUncBucketL2": 9000, "bThresholdExceeded": 0}),
    (FABRIC, {"state": 1, "healthMask": 0}),
    (FABRIC, {"state": 3, "healthMask": 2**32 - 1}),  # not available
]
GRAVITY = ("ok", "degraded", "predicted_failure", "failed")
CAUSES = {"failed": FAILED, "predicted_failure": PREDICTED, "degraded": DEGRADED, "ok": OK}
EACH = [(state, query, value) for state, several in CAUSES.items() for query, value in several]


def state(world: World) -> str:
    """Judge a GPU, and make sure that exactly one state is 1."""
    found = told("hw.status", world)
    assert sorted(found.values()) == [0, 0, 0, 1]
    assert {attributes[0][0] for attributes in found} == {"hw.state"}
    assert {attributes[0][1] for attributes in found} == set(GRAVITY)
    (now,) = (attributes[0][1] for attributes, value in found.items() if value)
    return str(now)


class TestStatus:
    def test_where_all_is_well_it_is_ok(self) -> None:
        assert state(WELL) == "ok"

    @pytest.mark.parametrize(("expected", "query", "value"), EACH, ids=str)
    def test_each_cause_alone_has_its_state(self, expected: str, query: Query, value: Any) -> None:
        assert state(WELL | {query: value}) == expected
        assert state({query: value}) == expected, "also where nothing else is known"

    @given(st.dictionaries(st.sampled_from([*WELL]), st.integers(0, 20)))
    def test_of_several_causes_the_gravest_holds(self, chosen: dict[Query, int]) -> None:
        world, expected = dict(WELL), "ok"
        for query, place in chosen.items():
            own = [(name, value) for name, asked, value in EACH if asked == query]
            name, world[query] = own[place % len(own)]
            expected = max(expected, name, key=GRAVITY.index)
        assert state(world) == expected

    @pytest.mark.parametrize("query", WELL)
    def test_what_is_refused_is_not_held_against_it(self, query: Query) -> None:
        assert state({asked: value for asked, value in WELL.items() if asked != query}) == "ok"

    @pytest.mark.parametrize("query", WELL)
    @pytest.mark.parametrize("value", [None, "1", [], {}, True, 2**32 - 1, float("nan")], ids=str)
    def test_what_makes_no_sense_is_not_held_against_it(self, query: Query, value: Any) -> None:
        assert state(WELL | {query: value}) == "ok"

    @pytest.mark.parametrize("code", [Code.GPU_IS_LOST, Code.RESET_REQUIRED])
    @pytest.mark.parametrize("query", WELL)
    def test_lost_or_in_need_of_a_reset_it_has_failed_whatever_else_is_answered(
        self, query: Query, code: int
    ) -> None:
        heard = {asked: Answer(0, value) for asked, value in WELL.items()} | {query: Answer(code)}
        metric = RECORDS["hw.status"]
        page = fold(Page(), Batch(HOPPER, NOW_NS, 1.0, heard), [metric], 15.0)
        found = {point.attributes[0][1]: point.value for point in page.readings[metric.name].points}
        assert found == {"ok": 0, "degraded": 0, "predicted_failure": 0, "failed": 1}

    def test_a_gpu_that_tells_nothing_of_its_health_has_no_state(self) -> None:
        assert told("hw.status", {}) == {}
        assert [gap.reason for gap in lacking("hw.status", {})] == [Reason.UNSUPPORTED]

    def test_when_it_is_gone_failed_is_what_is_known(self) -> None:
        read = RECORDS["hw.status"].read
        assert isinstance(read, Judging)
        assert {point.attributes[0][1] for point in read.lost if point.value} == {"failed"}
        assert {point.attributes[0][1] for point in read.lost} == set(GRAVITY)


class TestRecovery:
    NAME = "nvidia.gpu.recovery.status"

    @pytest.mark.parametrize(("number", "word"), ACTIONS.items())
    def test_each_action_is_a_state(self, number: int, word: str) -> None:
        found = told(self.NAME, {RECOVERY: number})
        assert [attributes[0][1] for attributes, value in found.items() if value] == [word]
        assert len(found) == len(ACTIONS)

    def test_an_action_of_tomorrow_is_told_by_its_number(self) -> None:
        found = told(self.NAME, {RECOVERY: 8})
        assert found[(("nvidia.gpu.recovery.action", "8"),)] == 1
        assert sum(found.values()) == 1

    def test_what_is_no_action_is_a_gap(self) -> None:
        for value in (None, "1", 1.5, 2**32 - 1):
            assert told(self.NAME, {RECOVERY: value}) == {}
            assert [gap.reason for gap in lacking(self.NAME, {RECOVERY: value})] == [Reason.INVALID]


@pytest.mark.parametrize(
    ("name", "query"), [("nvidia.gpu.ecc", ECC_MODE), ("nvidia.gpu.mig", MIG_MODE)]
)
@pytest.mark.parametrize(
    ("modes", "enabled", "pending"),
    [([1, 1], 1, 0), ([1, 0], 1, 1), ([0, 1], 0, 1), ([0, 0], 0, 0)],
    ids=str,
)
def test_a_mode_is_what_it_is_now_and_a_change_waits_for_a_reset(
    name: str, query: Query, modes: list[int], enabled: int, pending: int
) -> None:
    assert told(f"{name}.enabled", {query: modes}) == {(): enabled}
    assert told(f"{name}.change_pending", {query: modes}) == {(): pending}
    assert [gap.reason for gap in lacking(f"{name}.change_pending", {query: modes[:1]})] == [
        Reason.INVALID
    ]


class TestLicence:
    NAME = "nvidia.gpu.vgpu.licensed"

    @staticmethod
    def features(*pairs: tuple[int, int], supported: int = 1, count: int | None = None) -> World:
        listed = [{"featureCode": code, "featureState": on} for code, on in pairs]
        return {
            LICENCES: {
                "isGridLicenseSupported": supported,
                "licensableFeaturesCount": len(listed) if count is None else count,
                "gridLicensableFeatures": [*listed, {"featureCode": 0, "featureState": 0}],
            }
        }

    @pytest.mark.parametrize(
        ("pairs", "licensed"),
        [([(1, 1)], 1), ([(1, 0)], 0), ([(1, 0), (4, 1)], 1), ([(0, 1)], 0), ([], 0)],
        ids=str,
    )
    def test_any_feature_that_is_licensed_is_enough(
        self, pairs: list[tuple[int, int]], licensed: int
    ) -> None:
        assert told(self.NAME, self.features(*pairs)) == {(): licensed}

    def test_only_as_many_as_there_are_count(self) -> None:
        assert told(self.NAME, self.features((1, 0), (4, 1), count=1)) == {(): 0}

    def test_a_gpu_of_its_own_needs_no_licence(self) -> None:
        world = self.features(supported=0)
        assert told(self.NAME, world) == {}
        (gap,) = lacking(self.NAME, world)
        assert (gap.reason, gap.detail.partition(": ")[2]) == (
            Reason.UNSUPPORTED,
            "this is no virtual GPU",
        )

    def test_more_than_are_listed_makes_no_sense(self) -> None:
        world = self.features((1, 0), count=9)
        assert [gap.reason for gap in lacking(self.NAME, world)] == [Reason.INVALID]
