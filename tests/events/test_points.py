"""The counters of a tally: there from 0, and a new code as 0 before its count."""

from __future__ import annotations

from otel_gpu.catalog.events import METRICS, XID_CODE_ERRORS, XID_ERRORS
from otel_gpu.events.happening import Happening
from otel_gpu.events.points import ZERO_S, code_errors, errors
from otel_gpu.events.tally import Tally, folded
from otel_gpu.model import Kind, Profile, Snapshot, Tier
from tests.events.box import FIRST, NOW_NS, SECOND, event, line, machine


def heard(*happenings: Happening, now_s: float = 100.0, since: Tally | None = None) -> Tally:
    tally, _ = folded(since or Tally(since_ns=NOW_NS), happenings, machine(), now_s)
    return tally


def classes(tally: Tally, uuid: str, snapshot: Snapshot | None = None) -> dict[str, float]:
    return {
        str(point.attributes[0][1]): point.value
        for where, point in errors(tally, snapshot or machine())
        if where == uuid
    }


def codes(tally: Tally) -> dict[tuple[str, str], float]:
    return {
        (uuid, str(point.attributes[0][1])): point.value
        for uuid, point in code_errors(tally, machine())
    }


def test_each_gpu_has_every_class_from_zero_and_its_instances_have_none() -> None:
    found = list(errors(heard(), machine()))
    assert {uuid for uuid, _ in found} == {FIRST.uuid, SECOND.uuid}
    assert len(found) == 10
    assert {point.value for _, point in found} == {0}
    assert {point.start_ns for _, point in found} == {NOW_NS}
    assert classes(heard(), FIRST.uuid).keys() == {"node", "reset", "link", "application", "info"}


def test_codes_of_a_class_are_added_up_at_once() -> None:
    tally = heard(event(31), line(31), line(13), event(79, SECOND))
    assert classes(tally, FIRST.uuid)["application"] == 2
    assert classes(tally, SECOND.uuid)["application"] == 0
    assert classes(tally, SECOND.uuid)["node"] == 1


def test_a_code_that_is_not_in_the_table_counts_as_info() -> None:
    assert classes(heard(event(999)), FIRST.uuid)["info"] == 1


def test_where_nobody_listens_there_is_no_zero() -> None:
    tally = heard(event(31))
    assert list(errors(tally, machine(), unheard={FIRST.uuid, SECOND.uuid})) == []
    assert list(code_errors(tally, machine(), unheard={FIRST.uuid})) == []


def test_a_code_that_never_came_has_no_point() -> None:
    assert codes(heard()) == {}


def test_a_new_code_is_zero_until_every_reader_has_seen_it_and_then_its_count() -> None:
    tally = heard(line(31), line(31))
    assert codes(tally) == {(FIRST.uuid, "31"): 0}
    tally = heard(line(31), now_s=100 + ZERO_S - 0.1, since=tally)
    assert codes(tally) == {(FIRST.uuid, "31"): 0}
    tally = heard(now_s=100 + ZERO_S, since=tally)
    assert codes(tally) == {(FIRST.uuid, "31"): 3}
    tally = heard(line(31), line(13), now_s=500, since=tally)
    assert codes(tally) == {(FIRST.uuid, "31"): 4, (FIRST.uuid, "13"): 0}


def test_a_gpu_that_is_gone_keeps_its_counts() -> None:
    tally = heard(event(79))
    gone = Snapshot(devices={FIRST.uuid: FIRST}, up={FIRST.uuid: False})
    assert classes(tally, FIRST.uuid, gone)["node"] == 1


def test_what_belongs_to_no_gpu_of_ours_has_no_points() -> None:
    sxid = line(20034, switch="nvidia-nvswitch0")
    assert codes(heard(sxid, now_s=1.0)) == {}


def test_the_records_are_as_they_were_designed() -> None:
    for one in METRICS:
        assert (one.kind, one.unit, one.tier) == (Kind.COUNTER, "{error}", Tier.EVENT)
        assert (one.profile, one.integer, one.owner) == (Profile.CORE, True, False)
    assert XID_ERRORS.attributes == ("nvidia.gpu.xid.class",)
    assert XID_CODE_ERRORS.attributes == ("nvidia.gpu.xid",)
    assert f"{ZERO_S:.0f} s" in XID_CODE_ERRORS.note
