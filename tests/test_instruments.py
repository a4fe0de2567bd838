"""The catalog as instruments: whose a point is, how long it is shown, and the series behind it."""

import gc
import weakref
from dataclasses import replace
from functools import partial

import pytest

from otel_gpu.catalog.reading import supplied
from otel_gpu.instruments import Instruments, Shape
from otel_gpu.model import (
    NODE,
    Gap,
    Metric,
    Missing,
    Owner,
    Point,
    Reason,
    ResourceKey,
    Series,
)
from otel_gpu.points import SeriesObservation
from tests.observing import (
    ALLOCATION,
    ENERGY,
    GPU,
    MISSING,
    OTHER,
    POD,
    POWER,
    PROCESSES,
    SLICE,
    UP,
    Rig,
    reading,
    snapshot,
)


class TestIdentity:
    def test_a_point_says_which_gpu_it_is_of(self) -> None:
        rig = Rig(reading(POWER, Point(5.0)))
        identity = {"hw.id": "GPU-0", "hw.name": "nvidia4", "hw.type": "gpu"}
        assert rig.seen(POWER) == [(5.0, identity)]

    def test_an_instance_says_whose_part_it_is(self) -> None:
        rig = Rig(reading(POWER, Point(5.0), device=SLICE))
        assert rig.seen(POWER)[0][1] == {
            "hw.id": "MIG-0-1",
            "hw.name": "nvidia4",
            "hw.parent": "GPU-0",
            "hw.type": "gpu",
            "nvidia.gpu.mig.profile": "1g.18gb",
            "nvidia.gpu.mig.gpu_instance": 1,
            "nvidia.gpu.mig.compute_instance": 0,
        }

    def test_full_identity_adds_what_is_known_and_nothing_empty(self) -> None:
        shape = Shape(identity="full")
        for device, expected in (
            (GPU, {"hw.model", "hw.serial_number", "hw.driver_version"}),
            (replace(GPU, serial="", model=""), {"hw.driver_version"}),
        ):
            published = snapshot(reading(POWER, Point(5.0)), devices={GPU.uuid: device})
            source = partial(lambda one: one, published)
            (one,) = Instruments([POWER], source, every={}, shape=shape, clock=float).observe(POWER)
            assert set(one.attributes or ()) == {"hw.id", "hw.name", "hw.type"} | expected

    def test_a_gpu_without_a_name_has_no_name(self) -> None:
        nameless = replace(GPU, minor=-1)
        rig = Rig(reading(POWER, Point(5.0)), devices={GPU.uuid: nameless})
        assert "hw.name" not in rig.seen(POWER)[0][1]

    def test_the_points_own_attributes_stand_beside_it(self) -> None:
        rig = Rig(reading(POWER, Point(5.0, (("sensor", "a"),)), Point(7.0, (("sensor", "b"),))))
        assert [(value, labels["sensor"]) for value, labels in rig.seen(POWER)] == [
            (5.0, "a"),
            (7.0, "b"),
        ]


class TestOwner:
    def test_on_an_activity_row_the_owner_stands_while_it_is_alone(self) -> None:
        rig = Rig(reading(POWER, Point(5.0)), owners={GPU.uuid: (POD,)})
        assert rig.seen(POWER)[0][1]["k8s.pod.name"] == "train-0"
        assert "k8s.pod.uid" not in rig.seen(POWER)[0][1]
        assert rig.series(POWER)[0].resource == ResourceKey(GPU.uuid, POD)

    def test_a_shared_gpu_is_nobodys(self) -> None:
        rig = Rig(reading(POWER, Point(5.0)), owners={GPU.uuid: (POD, OTHER)})
        assert "k8s.pod.name" not in rig.seen(POWER)[0][1]
        assert rig.seen(POWER)[0][1]["nvidia.gpu.shared"] is True
        assert rig.series(POWER)[0].resource == ResourceKey(GPU.uuid)

    def test_a_gpu_that_somebody_unknown_uses_too_is_shared(self) -> None:
        somebody = frozenset({GPU.uuid})
        rig = Rig(reading(POWER, Point(5.0)), owners={GPU.uuid: (POD,)}, shared=somebody)
        assert rig.seen(POWER)[0][1]["nvidia.gpu.shared"] is True
        assert "k8s.pod.name" not in rig.seen(POWER)[0][1]

    def test_a_gpu_that_is_shared_no_more_has_other_series(self) -> None:
        rig = Rig(reading(POWER, Point(5.0)), owners={GPU.uuid: (POD, OTHER)})
        rig.seen(POWER)
        rig.snapshot = replace(rig.snapshot, owners={GPU.uuid: (OTHER,)})
        assert rig.seen(POWER)[0][1].get("k8s.pod.name") == "train-1"
        assert "nvidia.gpu.shared" not in rig.seen(POWER)[0][1]

    def test_a_process_is_its_holder_s_also_where_the_gpu_is_shared(self) -> None:
        points = [Point(size, (("process.pid", pid),)) for pid, size in ((7, 1), (8, 2), (9, 3))]
        rig = Rig(
            reading(PROCESSES, *points),
            metrics=[PROCESSES],
            owners={GPU.uuid: (POD, OTHER)},
            holders={(GPU.uuid, 7): POD, (GPU.uuid, 8): OTHER},
        )
        told = ("k8s.pod.name", "nvidia.gpu.shared")
        found = {
            labels["process.pid"]: (value, *(labels.get(key) for key in told))
            for value, labels in rig.seen(PROCESSES)
        }
        assert found == {7: (1, "train-0", None), 8: (2, "train-1", None), 9: (3, None, True)}
        assert {series.resource.owner for series in rig.series(PROCESSES)} == {POD, OTHER, None}

    def test_a_process_whose_holder_is_not_known_is_the_sole_owner_s(self) -> None:
        rig = Rig(
            reading(PROCESSES, Point(1, (("process.pid", 7),))),
            metrics=[PROCESSES],
            owners={GPU.uuid: (POD,)},
        )
        assert rig.seen(PROCESSES)[0][1]["k8s.pod.name"] == "train-0"

    def test_series_of_processes_are_kept_while_their_holder_stays(self) -> None:
        points = [Point(size, (("process.pid", pid),)) for pid, size in ((7, 1), (8, 2))]
        holders = {(GPU.uuid, 7): POD, (GPU.uuid, 8): OTHER}
        owners = {GPU.uuid: (POD, OTHER)}
        rig = Rig(reading(PROCESSES, *points), metrics=[PROCESSES], owners=owners, holders=holders)
        before = rig.series(PROCESSES)
        rig.snapshot = replace(rig.snapshot, read_s=1.0)
        assert [id(one) for one in rig.series(PROCESSES)] == [id(one) for one in before]

    def test_a_lifetime_counter_never_moves_to_an_owner(self) -> None:
        rig = Rig(reading(ENERGY, Point(5.0)), owners={GPU.uuid: (POD,)})
        assert "k8s.pod.name" not in rig.seen(ENERGY)[0][1]
        assert rig.series(ENERGY)[0].resource == ResourceKey(GPU.uuid)

    def test_the_owner_of_an_instance_is_not_the_owner_of_its_gpu(self) -> None:
        rig = Rig(
            reading(POWER, Point(5.0)),
            reading(POWER, Point(7.0), device=SLICE),
            owners={SLICE.uuid: (POD,)},
        )
        assert [labels.get("k8s.pod.name") for _, labels in rig.seen(POWER)] == [None, "train-0"]

    def test_an_allocation_joins_each_owner_with_its_gpu(self) -> None:
        rig = Rig(metrics=[ALLOCATION], owners={GPU.uuid: (POD, OTHER), SLICE.uuid: (POD,)})
        found = [
            (labels["hw.id"], labels["k8s.pod.name"], labels["nvidia.gpu.shared"], value)
            for value, labels in rig.seen(ALLOCATION)
        ]
        assert found == [
            ("GPU-0", "train-0", True, 1),
            ("GPU-0", "train-1", True, 1),
            ("MIG-0-1", "train-0", False, 1),
        ]
        assert {series.resource for series in rig.series(ALLOCATION)} == {
            ResourceKey(GPU.uuid),
            ResourceKey(SLICE.uuid),
        }


class TestResource:
    def test_scope_node_puts_everything_under_the_node(self) -> None:
        rig = snapshot(reading(POWER, Point(5.0)), owners={GPU.uuid: (POD,)})
        node = Instruments([POWER], lambda: rig, every={}, shape=Shape(scope="node"), clock=float)
        (one,) = node.observe(POWER)
        assert isinstance(one, SeriesObservation)
        assert one.series.resource == NODE
        assert (one.attributes or {})["k8s.pod.name"] == "train-0"

    def test_what_the_agent_tells_of_itself_is_under_the_node_with_the_gpu_on_the_point(
        self,
    ) -> None:
        rig = Rig(metrics=[UP], up={GPU.uuid: True, SLICE.uuid: False})
        assert [(labels["hw.id"], value) for value, labels in rig.seen(UP)] == [
            ("GPU-0", 1),
            ("MIG-0-1", 0),
        ]
        assert {series.resource for series in rig.series(UP)} == {NODE}

    def test_what_no_gpu_offers_is_summed_over_the_node_without_an_identity(self) -> None:
        gaps = tuple(
            Gap("hw.power", uuid, Missing(reason, ""))
            for uuid in (GPU.uuid, SLICE.uuid)
            for reason in (Reason.UNSUPPORTED, Reason.LOST)
        )
        rig = Rig(metrics=[MISSING], gaps=gaps)
        found = {
            (labels.get("hw.id"), labels["otel_gpu.reason"]): value
            for value, labels in rig.seen(MISSING)
        }
        assert found == {(None, "unsupported"): 2, ("GPU-0", "lost"): 1, ("MIG-0-1", "lost"): 1}


class TestAge:
    def test_a_reading_that_grew_stale_since_the_snapshot_is_not_observed(self) -> None:
        rig = Rig(reading(POWER, Point(5.0), at_s=100.0), reading(ENERGY, Point(7.0), at_s=100.0))
        rig.now_s = 110.0
        assert [value for value, _ in rig.seen(POWER)] == [5.0]
        rig.now_s = 110.1
        assert rig.seen(POWER) == []
        assert [value for value, _ in rig.seen(ENERGY)] == [7.0]  # it has no period: it is static

    def test_it_is_back_with_the_next_snapshot(self) -> None:
        rig = Rig(reading(POWER, Point(5.0), at_s=100.0))
        rig.now_s = 200.0
        assert rig.seen(POWER) == []
        rig.snapshot = snapshot(reading(POWER, Point(6.0), at_s=200.0))
        assert [value for value, _ in rig.seen(POWER)] == [6.0]

    def test_a_metric_without_a_supply_is_not_observed(self) -> None:
        unknown = replace(UP, name="otel_gpu.unknown", read=supplied("nobody"))
        assert Rig(metrics=[unknown]).seen(unknown) == []


class TestSeries:
    def test_a_stream_keeps_its_series_while_it_lives(self) -> None:
        rig = Rig(
            reading(POWER, Point(5.0)), reading(ENERGY, Point(1.0)), owners={GPU.uuid: (POD,)}
        )
        first = rig.series(POWER) + rig.series(ENERGY)
        for value in (6.0, 7.0):
            rig.snapshot = snapshot(
                reading(POWER, Point(value)),
                reading(ENERGY, Point(value)),
                owners={GPU.uuid: (POD,)},
            )
            now = rig.series(POWER) + rig.series(ENERGY)
            assert all(one is before for one, before in zip(now, first, strict=True))

    @pytest.mark.parametrize("metric", [ALLOCATION, UP, MISSING], ids=lambda m: m.name)
    def test_so_does_a_stream_that_the_agent_counts(self, metric: Metric) -> None:
        gaps = (Gap("hw.power", GPU.uuid, Missing(Reason.LOST, "")),)
        more = {"owners": {GPU.uuid: (POD,)}, "gaps": gaps}
        rig = Rig(metrics=[metric], **more)
        first = rig.series(metric)
        assert first
        for place in range(3):
            rig.snapshot = snapshot(reading(POWER, Point(float(place))), **more)
            assert all(one is two for one, two in zip(rig.series(metric), first, strict=True))

    def test_a_stream_that_ended_leaves_nothing_behind(self) -> None:
        rig = Rig(
            reading(POWER, Point(5.0)), owners={GPU.uuid: (POD,)}, metrics=[POWER, ALLOCATION]
        )
        gone = [kept(series) for m in (POWER, ALLOCATION) for series in rig.series(m)]
        assert len(gone) == 2
        rig.snapshot = snapshot(reading(POWER, Point(5.0)), owners={GPU.uuid: (OTHER,)})
        rig.series(POWER)
        rig.series(ALLOCATION)
        gc.collect()
        assert [memo() for memo in gone] == [None, None]

    def test_a_thousand_owners_come_and_go_without_growth(self) -> None:
        rig = Rig(metrics=[POWER, ALLOCATION])
        for place in range(1000):
            owner = Owner((("k8s.pod.name", f"train-{place}"),))
            rig.snapshot = snapshot(reading(POWER, Point(5.0)), owners={GPU.uuid: (owner,)})
            rig.series(POWER)
            rig.series(ALLOCATION)
        assert len(rig.instruments._streams) == 1
        assert [len(kept) for kept in rig.instruments._own_streams.values()] == [1]

    def test_a_counter_that_began_anew_is_a_new_series_with_its_start(self) -> None:
        rig = Rig(reading(ENERGY, Point(5.0)))
        (first,) = rig.series(ENERGY)
        rig.snapshot = snapshot(reading(ENERGY, Point(3.0, (), 2_000)))
        (second,) = rig.series(ENERGY)
        assert second is not first
        assert (first.start_ns, second.start_ns) == (None, 2_000)

    def test_a_gpu_that_was_enumerated_with_other_facts_has_new_series(self) -> None:
        rig = Rig(reading(POWER, Point(5.0)))
        (first,) = rig.series(POWER)
        renamed = {GPU.uuid: replace(GPU, minor=7)}
        rig.snapshot = snapshot(reading(POWER, Point(5.0)), devices=renamed)
        (second,) = rig.series(POWER)
        assert second is not first
        assert second.attributes["hw.name"] == "nvidia7"


class Memo:
    """Something that a way out keeps with a series; a Series itself takes no weak reference."""


def kept(series: Series) -> "weakref.ref[Memo]":
    """Keep a memo with a series, and give what tells whether it is still there."""
    memo = series.memo[Memo] = Memo()
    return weakref.ref(memo)
