"""What was collected reaches its target: once, oldest first, or is counted with the reason."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.pipeline.batch import Batch
from otel_gpu.pipeline.delivery import (
    LONGEST_REPLAY_PAUSE_S,
    LONGEST_RETRY_S,
    Delivery,
    replay_s,
    retry_s,
)
from otel_gpu.pipeline.outcome import Later, Outcome, Refused, Taken
from otel_gpu.pipeline.queue import Queue
from otel_gpu.pipeline.spool import Spool

PATIENCE_S = 10.0
BUSY = Later("503", "503 Busy")


class Target:
    """A transport that answers as the test says; what was not said is a success."""

    def __init__(self, *outcomes: Outcome | Exception) -> None:
        self.outcomes = list(outcomes)
        self.bodies: list[bytes] = []
        self.came = threading.Condition()
        self.open = threading.Event()  # while it is not set, a request hangs
        self.open.set()

    def send(self, body: bytes) -> Outcome:
        with self.came:
            self.bodies.append(body)
            self.came.notify_all()
        assert self.open.wait(PATIENCE_S)
        outcome = self.outcomes.pop(0) if self.outcomes else Taken()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def close(self) -> None:
        self.outcomes = [Refused("_OTHER", "closed")]
        self.open.set()

    def wait(self, count: int) -> None:
        with self.came:
            assert self.came.wait_for(lambda: len(self.bodies) >= count, PATIENCE_S)


Deliver = Callable[..., Delivery]


@pytest.fixture
def deliver() -> Iterator[Deliver]:
    made: list[Delivery] = []

    def make(target: Target, queue: Queue | None = None, **options: Any) -> Delivery:
        given = {"interval_s": 3600.0, "first_retry_s": 0.001, "record": lambda *_: None}
        delivery = Delivery(target, queue or Queue(1 << 20), target="there", **{**given, **options})
        delivery.begin()
        made.append(delivery)
        return delivery

    yield make
    for delivery in made:
        delivery.stop(1.0)


def batch(name: str, points: int = 10, age_s: float = 0.0) -> Batch:
    return Batch(name.encode(), points, time.time_ns() - int(age_s * 1e9))


def put(delivery: Delivery, *batches: Batch) -> int:
    """Put batches; give the failures before."""
    failures = delivery.failures
    delivery.put(batches)
    return failures


def failed_once(delivery: Delivery) -> None:
    """Wait until the first attempt has failed."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not delivery.failures:
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_batches_arrive_once_in_the_order_in_which_they_were_collected(deliver: Deliver) -> None:
    target = Target()
    delivery = deliver(target)

    assert delivery.flush(put(delivery, *map(batch, "abc")), PATIENCE_S)

    assert target.bodies == [b"a", b"b", b"c"]
    assert (delivery.stats.exported, delivery.stats.inflight) == (30, 0)
    assert delivery.stats.last_success_ns is not None


def test_what_is_not_accepted_now_is_sent_again_before_anything_else(deliver: Deliver) -> None:
    target = Target(BUSY, BUSY)
    delivery = deliver(target)

    put(delivery, *map(batch, "ab"))
    target.wait(4)

    assert delivery.flush(delivery.failures, PATIENCE_S)
    assert target.bodies == [b"a", b"a", b"a", b"b"]
    assert (delivery.stats.exported, delivery.stats.failed) == (20, {})
    assert delivery.failures == 2


def test_what_is_refused_for_good_is_counted_and_makes_way_for_the_next(deliver: Deliver) -> None:
    target = Target(Refused("400", "400 Bad Request"))
    delivery = deliver(target)

    assert not delivery.flush(put(delivery, *map(batch, "ab")), PATIENCE_S)
    assert delivery.flush(delivery.failures, PATIENCE_S)

    assert target.bodies == [b"a", b"b"]
    assert delivery.stats.failed == {"400": 10}
    assert (delivery.stats.exported, delivery.stats.last_error) == (10, "400 Bad Request")


def test_points_that_a_target_left_out_are_counted_apart(deliver: Deliver) -> None:
    delivery = deliver(Target(Taken(3, "too old"), Taken(99, "nonsense")))

    assert delivery.flush(put(delivery, *map(batch, "ab")), PATIENCE_S)

    assert delivery.stats.failed == {"rejected": 13}
    assert delivery.stats.exported == 7


def test_points_that_have_no_form_are_counted(deliver: Deliver) -> None:
    delivery = deliver(Target())

    delivery.put([], left_out=4)

    assert delivery.stats.failed == {"encoding": 4}


def test_each_kind_of_trouble_is_told_once_and_so_is_its_end(
    deliver: Deliver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    redirect = Refused("302", "302 Found, a redirect to there: not followed")
    tls = Later("SSLError", "certificate verify failed")
    delivery = deliver(
        Target(BUSY, BUSY, tls, tls, redirect, redirect, Taken(1, "too old"), Taken(1, "too old"))
    )

    put(delivery, *map(batch, "abcde"))
    while delivery.stats.backlog and delivery.stats.backlog.batches:
        delivery.flush(delivery.failures, PATIENCE_S)

    assert told(caplog) == [
        "there: not accepted, and kept to be sent again: 503 Busy",
        "there: not accepted, and kept to be sent again: certificate verify failed",
        "there: 10 points were refused for good: 302 Found, a redirect to there: not followed",
        "there: 1 of 10 points were rejected: too old",
        "there: accepted again, after 8 failures",
    ]


def test_a_warning_beside_a_full_success_is_passed_on(
    deliver: Deliver, caplog: pytest.LogCaptureFixture
) -> None:
    delivery = deliver(Target(Taken(0, "this endpoint goes away in May")))

    assert delivery.flush(put(delivery, batch("a")), PATIENCE_S)

    assert told(caplog) == ["there: this endpoint goes away in May"]
    assert (delivery.stats.exported, delivery.stats.failed) == (10, {})


def test_the_thread_survives_what_a_library_raises(
    deliver: Deliver, caplog: pytest.LogCaptureFixture
) -> None:
    target = Target(ZeroDivisionError("of theirs"))
    delivery = deliver(target)

    put(delivery, batch("a"))
    target.wait(2)

    assert delivery.flush(delivery.failures, PATIENCE_S)
    assert target.bodies == [b"a", b"a"]
    assert "an attempt to send failed unexpectedly" in caplog.text


def test_a_target_that_hangs_holds_nobody_up(deliver: Deliver) -> None:
    target = Target()
    target.open.clear()
    delivery = deliver(target)
    put(delivery, batch("a"))
    target.wait(1)

    put(delivery, *map(batch, "bc"))

    assert delivery.stats.inflight == 30
    target.open.set()
    assert delivery.flush(delivery.failures, PATIENCE_S)
    assert target.bodies == [b"a", b"b", b"c"]


def test_each_attempt_is_timed_for_the_agents_own_histogram(deliver: Deliver) -> None:
    recorded: list[tuple[str, Any]] = []
    delivery = deliver(
        Target(BUSY), record=lambda name, _seconds, attributes: recorded.append((name, attributes))
    )

    put(delivery, batch("a"))
    while delivery.stats.backlog and delivery.stats.backlog.batches:
        delivery.flush(delivery.failures, PATIENCE_S)

    name = "otel.sdk.exporter.operation.duration"
    assert recorded == [(name, (("error.type", "503"),)), (name, ())]


# The end, and the next beginning


def test_at_the_end_what_waits_is_sent_without_pauses(deliver: Deliver) -> None:
    target = Target(Later("503", "503 Busy", after_s=3600.0))
    delivery = deliver(target)
    put(delivery, *(batch(name, age_s=7200.0) for name in "abc"))
    failed_once(delivery)

    delivery.stop(PATIENCE_S)

    assert target.bodies == [b"a", b"a", b"b", b"c"]


def test_at_the_end_one_failure_is_enough_and_what_is_lost_is_told(
    deliver: Deliver, caplog: pytest.LogCaptureFixture
) -> None:
    target = Target(BUSY, BUSY)
    delivery = deliver(target, first_retry_s=3600.0)
    put(delivery, *map(batch, "abc"))
    failed_once(delivery)

    delivery.stop(PATIENCE_S)

    assert target.bodies == [b"a", b"a"]
    assert told(caplog)[-1] == "there: 30 points were not sent, and are lost"


def test_a_target_that_hangs_is_broken_off_and_its_batch_stays_on_disk(
    deliver: Deliver, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    target = Target()
    target.open.clear()
    delivery = deliver(target, Queue(1 << 20, Spool(tmp_path)))
    put(delivery, *map(batch, "ab"))
    target.wait(1)
    delivery.stop(0.3)
    assert told(caplog)[-1] == "there: 20 points wait on disk for the next start"

    reached = Target()
    following = deliver(reached, Queue(1 << 20, Spool(tmp_path)))

    assert following.flush(0, PATIENCE_S)
    assert reached.bodies == [b"a", b"b"]


# How long to wait


@given(st.integers(0, 10_000), st.floats(0.001, 10), st.floats(0, 1))
def test_waits_double_up_to_a_limit_and_are_spread(
    failures: int, first: float, part: float
) -> None:
    wait_s = retry_s(failures, first, None, part)

    longest_s = min(first * 2 ** min(failures, 30), LONGEST_RETRY_S)
    assert longest_s / 2 <= wait_s * 1.000001
    assert wait_s <= longest_s * 1.000001


@given(st.integers(0, 100), st.floats(0, 600), st.floats(0, 1))
def test_a_server_that_says_when_is_not_asked_before(
    failures: int, after_s: float, part: float
) -> None:
    assert retry_s(failures, 1.0, after_s, part) >= after_s


@given(st.floats(0, 1e6), st.floats(0.1, 3600), st.floats(0, 1))
def test_a_replay_is_paced_and_faster_than_what_is_new(
    age_s: float, interval_s: float, part: float
) -> None:
    pause_s = replay_s(age_s, interval_s, part)

    assert (pause_s > 0) == (age_s > interval_s)
    assert pause_s <= min(interval_s / 10, LONGEST_REPLAY_PAUSE_S)
