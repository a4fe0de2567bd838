"""Two sources are counted as one, storms keep their count, and each Xid has its record or is told.

Sequences of happenings are folded as an agent would, a second or less apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.events.happening import Happening
from otel_gpu.events.record import Record
from otel_gpu.events.tally import (
    BURST_S,
    MOST_KEYS,
    MOST_RECORDS,
    WINDOW_S,
    Tally,
    ended,
    folded,
)
from otel_gpu.model import Snapshot
from tests.events.box import FIRST, HIDDEN, NOW_NS, PART, SECOND, event, line, machine, note, said


class Listener:
    """Folds happenings at the moments that a test says."""

    def __init__(self, snapshot: Snapshot | None = None, wait_s: float = 2.0) -> None:
        self.tally = Tally(since_ns=NOW_NS)
        self.snapshot = snapshot or machine()
        self.wait_s = wait_s
        self.now_s = 100.0
        self.records: list[Record] = []

    def hears(self, *happenings: Happening, after_s: float = 0.0) -> list[Record]:
        """Let time go by, then fold; give the records of this fold."""
        self.now_s += after_s
        self.tally, records = folded(self.tally, happenings, self.snapshot, self.now_s, self.wait_s)
        self.records += records
        return records

    def total(self, code: int = 31, where: str = FIRST.uuid) -> int:
        count = self.tally.counts.get((where, code))
        return count.total if count else 0

    def all_told(self) -> int:
        """Give how many Xids the records tell of, those that are to come included."""
        records = self.records + ended(self.tally, self.snapshot)
        repeats = [said(record).get("nvidia.gpu.xid.repeats", 1) for record in records]
        return int(sum(repeats))


@pytest.fixture
def agent() -> Listener:
    return Listener()


@pytest.mark.parametrize("order", [(event(), line()), (line(), event())])
def test_an_event_and_its_line_are_one_xid(agent: Listener, order: Sequence[Happening]) -> None:
    for happening in order:
        agent.hears(happening, after_s=0.5)
    agent.hears(after_s=3)
    assert agent.total() == 1
    assert len(agent.records) == 1


def test_each_source_alone_is_counted() -> None:
    for source in (event, line):
        agent = Listener()
        for _ in range(3):
            agent.hears(source(), after_s=1)
        assert agent.total() == 3


def test_repeats_beyond_the_pair_are_counted(agent: Listener) -> None:
    agent.hears(event(), line(), line(), line())
    assert agent.total() == 3
    agent.hears(event())
    assert agent.total() == 3


def test_a_storm_that_one_source_thins_out_keeps_the_others_count(agent: Listener) -> None:
    for place in range(300):
        agent.hears(*[event()] * 10, *([line()] if place % 10 == 0 else []), after_s=0.1)
    assert agent.total() == 3_000


def test_what_one_source_missed_before_hides_nothing_now(agent: Listener) -> None:
    agent.hears(line(), line(), line())  # while the worker was being replaced
    agent.hears(event(), after_s=3_600)  # which the kernel had overwritten
    assert agent.total() == 4
    assert len(agent.records) == 3
    assert len(agent.hears(after_s=2)) == 1


def test_codes_and_gpus_are_counted_apart(agent: Listener) -> None:
    agent.hears(event(31), event(31, SECOND), event(13), line(13, SECOND))
    assert [agent.total(code, gpu.uuid) for code in (31, 13) for gpu in (FIRST, SECOND)] == [1] * 4


def test_an_instances_xid_is_its_gpus(agent: Listener) -> None:
    agent.hears(event(43, SECOND, gi=5, ci=0), line(43, SECOND, gpu_instance=5))
    assert agent.total(43, SECOND.uuid) == 1
    assert agent.total(43, PART.uuid) == 0


def test_a_gpu_that_falls_off_the_bus_does_so_once(agent: Listener) -> None:
    agent.hears(line(79), note())
    assert agent.total(79) == 1
    agent.hears(event(79), after_s=1)
    agent.hears(note(), note(), after_s=4)
    assert agent.total(79) == 1
    assert len(agent.records) == 1


def test_a_note_is_believed_where_nobody_else_says_so(agent: Listener) -> None:
    agent.hears(note(), note(), note())
    assert agent.total(79) == 1
    assert agent.records == []
    (record,) = agent.hears(after_s=2)
    assert said(record)["log.record.original"] == "fallen"


def test_the_line_that_comes_after_a_note_completes_it(agent: Listener) -> None:
    agent.hears(note())
    (record,) = agent.hears(line(79, pid=7, text="the line"), after_s=1)
    assert (agent.total(79), said(record)["process.pid"]) == (1, 7)
    assert said(record)["log.record.original"] == "the line"


def test_gpus_that_the_configuration_leaves_out_are_left_out(agent: Listener) -> None:
    agent.hears(event(31, HIDDEN), line(31, HIDDEN))
    assert agent.tally.counts == {}
    assert agent.hears(after_s=5) == []


def test_a_gpu_whose_instances_alone_are_read_is_not_left_out() -> None:
    agent = Listener(replace(machine(), devices={PART.uuid: PART}))
    (record,) = agent.hears(line(43, SECOND, gpu_instance=5))
    assert said(record)["hw.id"] == SECOND.uuid


def test_a_gpu_that_nobody_knows_has_a_record_all_the_same() -> None:
    agent = Listener(Snapshot())
    (record,) = agent.hears(line(119))
    assert said(record)["nvidia.gpu.pci.address"] == FIRST.pci_address
    assert "hw.id" not in said(record)
    assert agent.total(119, FIRST.pci_address) == 1


def test_the_record_waits_for_the_kernels_text(agent: Listener) -> None:
    assert agent.hears(event()) == []
    assert agent.hears(after_s=1) == []
    (record,) = agent.hears(line(), after_s=0.5)
    assert said(record)["process.pid"] == 735
    assert said(record)["log.record.original"] == "MMU Fault"


def test_the_record_does_not_wait_longer_than_two_seconds(agent: Listener) -> None:
    agent.hears(event())
    assert agent.hears(after_s=1.9) == []
    (record,) = agent.hears(after_s=0.1)
    assert "process.pid" not in said(record)
    assert agent.hears(line(), after_s=0.5) == []


def test_without_a_kernel_log_nothing_waits() -> None:
    assert len(Listener(wait_s=0).hears(event())) == 1


def test_the_line_alone_waits_for_nothing(agent: Listener) -> None:
    assert len(agent.hears(line())) == 1
    assert agent.hears(event(), after_s=0.1) == []


def test_lines_complete_the_records_in_their_order(agent: Listener) -> None:
    agent.hears(*[event()] * 3)
    records = agent.hears(*[line(pid=pid) for pid in (1, 2, 3)])
    assert [said(record)["process.pid"] for record in records] == [1, 2, 3]


def test_a_line_completes_the_record_of_its_own_code_and_gpu(agent: Listener) -> None:
    agent.hears(event(31), event(13), event(13, SECOND))
    (record,) = agent.hears(line(13, SECOND, pid=7))
    assert (said(record)["hw.id"], said(record)["nvidia.gpu.xid"]) == (SECOND.uuid, "13")
    assert [said(late).get("process.pid") for late in agent.hears(after_s=2)] == [None, None]


def test_an_events_instance_is_kept_where_the_line_has_none(agent: Listener) -> None:
    agent.hears(event(43, SECOND, gi=5, ci=0))
    (record,) = agent.hears(line(43, SECOND))
    assert said(record)["nvidia.gpu.mig.gpu_instance"] == 5
    assert said(record)["nvidia.gpu.mig.compute_instance"] == 0


def test_a_storm_has_ten_records_a_minute_and_one_for_the_rest(agent: Listener) -> None:
    for _ in range(600):
        agent.hears(line(), event(), after_s=0.1)
    agent.hears(after_s=1)
    assert agent.total() == 600
    assert len(agent.records) == MOST_RECORDS + 1
    assert said(agent.records[-1])["nvidia.gpu.xid.repeats"] == 590
    assert "came 590 times more within 60 s" in agent.records[-1].body
    assert len(agent.hears(line(), after_s=1)) == 1


def test_a_storm_of_one_code_does_not_silence_another(agent: Listener) -> None:
    agent.hears(*[line()] * 1_000)
    (record,) = agent.hears(line(79))
    assert said(record)["nvidia.gpu.xid"] == "79"


def test_a_minute_without_a_rest_ends_without_a_word(agent: Listener) -> None:
    agent.hears(line())
    assert agent.hears(after_s=WINDOW_S + 1) == []
    assert agent.tally.windows == {}


def test_what_still_waits_at_the_end_is_told(agent: Listener) -> None:
    agent.hears(event(13), *[line()] * 25)
    assert agent.all_told() == 26


def test_a_switchs_errors_have_records_and_a_bound_too(agent: Listener) -> None:
    sxid = line(20034, switch="nvidia-nvswitch0", fatal=True)
    assert len(agent.hears(*[sxid] * 100)) == MOST_RECORDS
    (record,) = agent.hears(after_s=61)
    assert said(record)["nvidia.nvswitch.sxid.repeats"] == 90


STEPS = st.lists(
    st.tuples(
        st.sampled_from([event(), line(), event(13), line(13)]),
        st.sampled_from([0.0, 0.0, 0.4, 1.0, 3.0, 11.0, 61.0]),
    ),
    max_size=60,
)


def per_source(steps: Iterable[tuple[Happening, float]], code: int) -> tuple[int, int]:
    """Count what each of the two sources told of a code."""
    told = [str(happening.source) for happening, _ in steps if happening.code == code]
    return told.count("nvml"), told.count("kernel")


@given(STEPS)
def test_a_count_is_between_the_larger_source_and_both_and_never_falls(
    steps: list[tuple[Happening, float]],
) -> None:
    agent, before = Listener(), {31: 0, 13: 0}
    for happening, after_s in steps:
        agent.hears(happening, after_s=after_s)
        for code, total in before.items():
            assert agent.total(code) in {total, total + 1}
            before[code] = agent.total(code)
    for code, total in before.items():
        nvml, kernel = per_source(steps, code)
        assert max(nvml, kernel) <= total <= nvml + kernel


@given(STEPS)
def test_every_xid_that_is_counted_is_told(steps: list[tuple[Happening, float]]) -> None:
    agent = Listener()
    for happening, after_s in steps:
        agent.hears(happening, after_s=after_s)
    assert agent.all_told() == agent.total(31) + agent.total(13)
    assert len(agent.tally.drafts) <= 2 * MOST_RECORDS


@given(st.lists(st.booleans(), max_size=40), st.floats(0, BURST_S / 40))
def test_xids_that_both_sources_tell_of_are_counted_once_in_whatever_order(
    kernel_first: list[bool], pause_s: float
) -> None:
    agent = Listener()
    late: list[Happening] = []
    for first in kernel_first:
        agent.hears(line() if first else event(), after_s=pause_s)
        late.append(event() if first else line())
    for happening in late:
        agent.hears(happening)
    assert agent.total() == len(kernel_first)
    assert agent.all_told() == len(kernel_first)


def test_codes_without_end_do_not_fill_the_memory() -> None:
    listener = Listener()
    for code in range(MOST_KEYS + 10):
        listener.hears(event(code=code))
    assert len(listener.tally.counts) == MOST_KEYS
    listener.hears(event(code=7))
    assert listener.total(7) == 2
