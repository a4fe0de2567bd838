from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.clock import SteadyClock

S = 1_000_000_000


class Machine:
    """A machine whose clock can be set."""

    def __init__(self) -> None:
        self.unix = 1_700_000_000 * S
        self.monotonic = 50 * S
        self.clock = SteadyClock(lambda: self.unix, lambda: self.monotonic)

    def passes(self, seconds: float) -> int:
        self.unix += int(seconds * S)
        self.monotonic += int(seconds * S)
        return self.clock.unix_ns()


def test_it_is_the_machines_clock() -> None:
    machine = Machine()
    assert [machine.passes(1.5), machine.passes(0.1)] == [machine.unix - S // 10, machine.unix]


def test_a_step_forward_is_followed_at_once() -> None:
    machine = Machine()
    machine.unix += 3600 * S
    assert machine.passes(1) == machine.unix


def test_after_a_step_back_it_goes_on_a_tenth_slower_until_they_meet() -> None:
    machine = Machine()
    start = machine.passes(1)
    machine.unix -= 60 * S
    assert machine.passes(10) == start + 9 * S
    assert machine.passes(100) == start + 99 * S
    machine.passes(500)
    assert machine.passes(1) == machine.unix


def test_a_step_back_is_said_once_and_its_end_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    machine = Machine()
    machine.unix -= 60 * S
    for _ in range(700):
        machine.passes(1)
    first, last = (record.message for record in caplog.records)
    assert first.startswith("the clock was set back by 60 s")
    assert last == "timestamps follow the clock again"


@given(st.lists(st.tuples(st.floats(0, 1e4), st.integers(-(10**6), 10**6)), max_size=30))
def test_it_never_goes_back(steps: list[tuple[float, int]]) -> None:
    machine = Machine()
    before = machine.passes(0)
    for seconds, jump in steps:
        machine.unix += jump * S
        now = machine.passes(seconds)
        assert now >= before
        before = now
