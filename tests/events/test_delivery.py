"""A batch is held until it is taken, refused for good, or the agent ends; nothing is silent."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from otel_gpu.events.delivery import Delivery, DeliveryStats, passes
from otel_gpu.pipeline.failure import ExportError

PATIENCE_S = 10.0


class Target:
    """An endpoint that answers as it is told to, and then takes everything."""

    name = "otlp http://collector:4318"

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.taken: list[Sequence[Any]] = []
        self.tried = threading.Semaphore(0)
        self.closed = False

    def send(self, batch: Sequence[Any]) -> ExportError | None:
        self.tried.release()
        if self.answers:
            kind = self.answers.pop(0)
            return ExportError(kind, f"it said {kind}")
        self.taken.append(batch)
        return None

    def close(self) -> None:
        self.closed = True


def delivered(target: Target, *batches: Sequence[Any]) -> tuple[DeliveryStats, list[Any]]:
    """Hand batches over; give what became of them, and what the fallback was given."""
    fallen: list[Any] = []
    delivery = Delivery(target, fallen.append, first_s=0.01)
    for batch in batches:
        delivery.export(batch)
    return delivery.stats, fallen


def test_a_batch_that_is_taken_is_counted() -> None:
    target = Target()
    stats, fallen = delivered(target, ["a", "b"], ["c"])
    assert (stats, fallen) == (DeliveryStats(delivered=3), [])
    assert target.taken == [["a", "b"], ["c"]]


def test_a_batch_that_is_not_taken_is_seen_at_once_and_sent_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "otel_gpu")
    target = Target("503")
    stats, fallen = delivered(target, ["a"], ["b"])
    assert (stats.delivered, stats.lost, stats.last_error) == (2, 0, "it said 503")
    assert fallen == [["a"]]
    assert target.taken == [["a"], ["b"]]
    assert [record.getMessage() for record in caplog.records] == [
        "otlp http://collector:4318: log records are not accepted: it said 503",
        "otlp http://collector:4318: log records are accepted again",
    ]


def test_what_is_refused_for_good_is_given_up_and_does_not_hold_up_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    target = Target("404", "404")
    stats, fallen = delivered(target, ["a", "b"], ["c"], ["d"])
    assert (stats.delivered, stats.lost) == (1, 3)
    assert fallen == [["a", "b"], ["c"]]
    assert caplog.text.count("not accepted") == 1


def test_a_stop_ends_the_waiting() -> None:
    target = Target(*["UNAVAILABLE"] * 50)
    fallen: list[Any] = []
    delivery = Delivery(target, fallen.append)
    thread = threading.Thread(target=delivery.export, args=(["a"],))
    thread.start()
    assert target.tried.acquire(timeout=PATIENCE_S)
    began_s = time.monotonic()
    delivery.stop()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert time.monotonic() - began_s < 1
    assert (delivery.stats.lost, fallen) == (1, [["a"]])


def test_after_a_stop_each_batch_has_one_attempt() -> None:
    target = Target("UNAVAILABLE", "UNAVAILABLE")
    fallen: list[Any] = []
    delivery = Delivery(target, fallen.append)
    delivery.stop()
    for batch in (["a"], ["b"], ["c"]):
        delivery.export(batch)
    assert fallen == [["a"], ["b"]]
    assert target.taken == [["c"]]


def test_a_shutdown_breaks_off_what_the_target_does() -> None:
    target = Target()
    delivery = Delivery(target, lambda _batch: None)
    assert delivery.force_flush()
    delivery.shutdown()
    assert target.closed


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("503", True),
        ("429", True),
        ("400", False),
        ("404", False),
        ("302", False),
        ("UNAVAILABLE", True),
        ("DEADLINE_EXCEEDED", True),
        ("UNIMPLEMENTED", False),
        ("_OTHER", False),
        ("ConnectionError", True),
        ("ReadTimeout", True),
    ],
)
def test_what_may_pass_is_tried_again(kind: str, *, expected: bool) -> None:
    assert passes(kind) is expected
