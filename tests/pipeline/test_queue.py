"""A queue gives back what was put into it, oldest first, or says what became of it."""

from __future__ import annotations

import logging
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from otel_gpu.pipeline.batch import Batch
from otel_gpu.pipeline.queue import Entry, Queue
from otel_gpu.pipeline.spool import Spool

PATIENCE_S = 10.0
LARGE = 1 << 20


def batch(name: str, points: int = 10, size: int = 0) -> Batch:
    return Batch(name.encode().ljust(size, b"."), points, 1_700_000_000_000_000_000 + len(name))


def taken(queue: Queue) -> list[str]:
    """Take everything out."""
    names = []
    while entry := queue.oldest(0.0):
        names.append(entry.batch.body.decode().rstrip("."))
        queue.done(entry.ticket)
    return names


@pytest.fixture(params=["memory", "disk"])
def queue(request: pytest.FixtureRequest, tmp_path: Path) -> Queue:
    return Queue(1_000, Spool(tmp_path / "queue") if request.param == "disk" else None)


def test_batches_come_out_in_the_order_in_which_they_went_in(queue: Queue) -> None:
    for name in "abc":
        queue.put(batch(name))

    assert taken(queue) == ["a", "b", "c"]
    assert (queue.state.batches, queue.state.size_bytes, queue.state.points) == (0, 0, 0)


def test_a_batch_stays_until_it_is_done(queue: Queue) -> None:
    queue.put(batch("a"))

    first, again = queue.oldest(0.0), queue.oldest(0.0)

    assert first == again
    assert queue.state.points == 10
    assert queue.state.oldest_ns == batch("a").collected_ns


def test_when_it_is_full_the_oldest_is_dropped_and_counted(queue: Queue) -> None:
    for name in ("a", "b", "c", "d"):
        queue.put(batch(name, size=300))

    names = taken(queue)

    assert names == ["a", "b", "c", "d"][-len(names) :]
    assert 2 <= len(names) < 4
    assert queue.state.dropped == {"full": 10 * (4 - len(names))}


def test_a_batch_larger_than_the_queue_costs_only_itself(queue: Queue) -> None:
    queue.put(batch("a"))
    queue.put(batch("b", size=2_000))

    assert taken(queue) == ["a"]
    assert queue.state.dropped == {"too_large": 10}


def test_a_batch_that_was_dropped_while_it_was_sent_can_be_done_with(queue: Queue) -> None:
    queue.put(batch("a", size=300))
    entry = queue.oldest(0.0)
    assert entry
    for name in "bcde":
        queue.put(batch(name, size=300))

    queue.done(entry.ticket)

    assert "a" not in taken(queue)


def test_whoever_waits_gets_the_next_batch(queue: Queue) -> None:
    got: list[Entry | None] = []
    waiting = threading.Thread(target=lambda: got.append(queue.oldest(PATIENCE_S)))
    waiting.start()

    queue.put(batch("a"))
    waiting.join(PATIENCE_S)

    assert got[0]
    assert got[0].batch == batch("a")


def test_whoever_waits_can_be_woken_without_one(queue: Queue) -> None:
    got: list[Entry | None] = []
    waiting = threading.Thread(target=lambda: got.append(queue.oldest(PATIENCE_S)))
    waiting.start()

    queue.wake()
    waiting.join(PATIENCE_S)

    assert got == [None]


# On disk


def on_disk(directory: Path, max_bytes: int = LARGE) -> Queue:
    return Queue(max_bytes, Spool(directory))


def test_what_was_not_done_is_there_again(tmp_path: Path) -> None:
    queue = on_disk(tmp_path)
    for name in "abc":
        queue.put(batch(name))
    entry = queue.oldest(0.0)
    assert entry
    queue.done(entry.ticket)
    queue.close()

    following = on_disk(tmp_path)

    assert (following.state.batches, following.state.points) == (2, 20)
    assert following.state.oldest_ns == batch("b").collected_ns
    following.put(batch("d"))
    assert taken(following) == ["b", "c", "d"]
    assert not list(tmp_path.glob("*.batch"))


def test_a_smaller_limit_holds_for_what_was_left_too(tmp_path: Path) -> None:
    queue = on_disk(tmp_path)
    for name in "abcd":
        queue.put(batch(name, size=300))
    queue.close()

    following = on_disk(tmp_path, 800)

    assert following.state.dropped == {"full": 20}
    assert taken(following) == ["c", "d"]


def test_a_torn_record_is_skipped_counted_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    queue = on_disk(tmp_path)
    for name in "abc":
        queue.put(batch(name))
    second = sorted(tmp_path.glob("*.batch"))[1]
    second.write_bytes(second.read_bytes()[:-1])

    assert taken(queue) == ["a", "c"]

    assert queue.state.dropped == {"torn": 10}
    assert f"a batch of the queue is skipped: {second}: its checksum is wrong" in caplog.text
    assert not second.exists()


def test_a_directory_that_fails_costs_nothing_and_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    directory = tmp_path / "queue"
    queue = on_disk(directory)
    where = [queue.state.on_disk]

    shutil.rmtree(directory)
    queue.put(batch("a"))
    queue.put(batch("b"))
    where.append(queue.state.on_disk)
    directory.mkdir()
    queue.put(batch("c"))
    where.append(queue.state.on_disk)

    assert where == [True, False, True]
    assert taken(queue) == ["a", "b", "c"]
    said = [
        record.getMessage().removeprefix(f"queue directory {directory}: ")
        for record in caplog.records
    ]
    kept = "No such file or directory; new batches are kept in memory until it works again"
    assert said == [kept, "works again"]


def test_a_batch_that_cannot_be_read_now_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As when the process has no file handle left."""
    queue = on_disk(tmp_path)
    queue.put(batch("a"))
    (file,) = tmp_path.glob("*.batch")
    aside = file.rename(tmp_path / "aside")
    file.mkdir()  # which cannot be read as a file, by root neither

    assert [queue.oldest(0.0), queue.oldest(0.0)] == [None, None]
    assert (queue.state.batches, queue.state.dropped) == (1, {})
    file.rmdir()
    aside.rename(file)

    assert taken(queue) == ["a"]
    assert len(caplog.records) == 1


PRODUCER = """
import sys
from pathlib import Path
from otel_gpu.pipeline.batch import Batch
from otel_gpu.pipeline.queue import Queue
from otel_gpu.pipeline.spool import Spool
directory, number = Path(sys.argv[1]), int(sys.argv[2])
queue = Queue(1 << 24, Spool(directory))
while True:
    for _ in range(2):
        queue.put(Batch(b"%d" % number * 500, 1, number))
        print("put", number, flush=True)
        number += 1
    entry = queue.oldest(0.0)
    print("sent", entry.batch.collected_ns, flush=True)
    queue.done(entry.ticket)
"""


def test_agents_that_are_killed_lose_nothing_and_send_at_most_one_batch_twice_each(
    tmp_path: Path,
) -> None:
    put: set[int] = set()
    sent: list[int] = []
    kills = 12
    chance = random.Random(7)  # noqa: S311 - moments to kill at, the same each time
    for _ in range(kills):
        command = [sys.executable, "-c", PRODUCER, str(tmp_path), str(max(put, default=-1) + 2)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as agent:
            assert agent.stdout
            lines = [agent.stdout.readline() for _ in range(chance.randrange(3, 200))]
            agent.kill()
            lines += agent.stdout.readlines()
        words = [line.split() for line in lines if line.endswith("\n")]
        put |= {int(number) for word, number in words if word == "put"}
        sent += [int(number) for word, number in words if word == "sent"]

    last = Queue(1 << 24, Spool(tmp_path))
    while entry := last.oldest(0.0):
        assert entry.batch.body == b"%d" % entry.batch.collected_ns * 500
        sent.append(entry.batch.collected_ns)
        last.done(entry.ticket)

    assert put <= set(sent)
    assert last.state.dropped == {}
    twice = [number for number, count in Counter(sent).items() if count > 1]
    assert len(twice) <= kills
    assert max(Counter(sent).values()) <= 2
    first_seen = list(dict.fromkeys(sent))
    assert first_seen == sorted(first_seen)


# Against a model


class Compared(RuleBasedStateMachine):
    """A queue does what a list with a limit does, and forgets nothing when it is opened anew."""

    with_disk = False

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.number = 0
        self.model: list[bytes] = []
        self.dropped = 0
        self.open()

    def open(self) -> None:
        self.queue = Queue(2_000, Spool(self.directory / "q") if self.with_disk else None)

    def size(self, bodies: list[bytes]) -> int:
        head = 38 if self.with_disk else 0  # of a record
        return sum(len(body) + head for body in bodies)

    @rule(size=st.integers(0, 2_400))
    def put(self, size: int) -> None:
        self.number += 1
        body = str(self.number).encode().ljust(size, b".")
        self.queue.put(Batch(body, 1, self.number))
        if len(body) > 2_000:
            self.dropped += 1
            return
        self.model.append(body)
        while self.size(self.model) > 2_000 and len(self.model) > 1:
            del self.model[0]
            self.dropped += 1

    @rule(deliver=st.booleans())
    def take(self, deliver: bool) -> None:  # noqa: FBT001 - hypothesis gives it by name
        entry = self.queue.oldest(0.0)
        assert (entry.batch.body if entry else None) == (self.model[0] if self.model else None)
        if entry and deliver:
            self.queue.done(entry.ticket)
            del self.model[0]

    @rule()
    def restart(self) -> None:
        if self.with_disk:
            self.queue.close()
            self.open()
            self.dropped = 0

    @invariant()
    def it_says_what_it_holds(self) -> None:
        state = self.queue.state
        assert (state.batches, state.points) == (len(self.model), len(self.model))
        assert state.size_bytes == self.size(self.model)
        assert sum(state.dropped.values()) == self.dropped

    def teardown(self) -> None:
        self.queue.close()
        shutil.rmtree(self.directory)


class ComparedOnDisk(Compared):
    with_disk = True


TestInMemory = Compared.TestCase
TestOnDisk = ComparedOnDisk.TestCase
TestInMemory.settings = TestOnDisk.settings = settings(max_examples=40, stateful_step_count=30)


def test_what_waits_can_be_read_while_a_disk_hangs(queue: Queue) -> None:
    with queue._changed:  # as a write that does not return would hold it
        began_s = time.monotonic()
        assert queue.state.batches == 0
        assert time.monotonic() - began_s < PATIENCE_S
