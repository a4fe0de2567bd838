from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import IO

import pytest

from otel_gpu.worker.channel import TAIL, Channel, ClosedError, WaitEndedError
from otel_gpu.worker.frames import Unpacker, pack

BIG = "x" * 1_000_000  # more than a pipe holds


class Wire:
    """A channel, and the other ends of its three pipes."""

    def __init__(self) -> None:
        self.interrupted = threading.Event()
        self.stdin, outgoing = pipe()
        incoming, self.stdout = pipe()
        errors, self.stderr = pipe()
        self.channel = Channel((outgoing, incoming, errors), self.interrupted.is_set)

    def close(self) -> None:
        for end in (self.stdin, self.stdout, self.stderr):
            end.close()
        self.channel.close()


def pipe() -> tuple[IO[bytes], IO[bytes]]:
    reader, writer = os.pipe()
    return os.fdopen(reader, "rb", buffering=0), os.fdopen(writer, "wb", buffering=0)


@pytest.fixture
def wire() -> Iterator[Wire]:
    wire = Wire()
    yield wire
    wire.close()


def soon(within_s: float = 5.0) -> float:
    return time.monotonic() + within_s


def test_messages_are_received_in_the_order_in_which_they_were_sent(wire: Wire) -> None:
    wire.stdout.write(pack("first") + pack("second"))
    assert [wire.channel.receive(soon()), wire.channel.receive(soon())] == ["first", "second"]


def test_a_message_larger_than_the_pipe_is_sent_in_parts(wire: Wire) -> None:
    got: list[object] = []

    def read() -> None:
        unpacker = Unpacker()
        while not got:
            got.extend(unpacker.feed(wire.stdin.read(65536) or b""))

    reader = threading.Thread(target=read)
    reader.start()
    wire.channel.send(BIG, soon())
    reader.join(5)
    assert got == [BIG]


def test_waiting_ends_at_its_deadline_in_both_directions(wire: Wire) -> None:
    with pytest.raises(TimeoutError):
        wire.channel.receive(soon(0.02))
    with pytest.raises(TimeoutError):
        wire.channel.send(BIG, soon(0.02))  # nobody reads


def test_another_thread_can_end_the_waiting(wire: Wire) -> None:
    threading.Timer(0.05, wire.interrupted.set).start()
    before_s = time.monotonic()
    with pytest.raises(WaitEndedError):
        wire.channel.receive(soon(30))
    assert time.monotonic() - before_s < 2


def test_the_end_of_the_other_side_is_told_from_a_deadline(wire: Wire) -> None:
    wire.stdin.close()
    with pytest.raises(ClosedError, match="input"):
        wire.channel.send("hello", soon())
    wire.stdout.close()
    with pytest.raises(ClosedError, match="output"):
        wire.channel.receive(soon())


def test_the_end_of_stderr_is_kept_and_never_stands_in_the_way(wire: Wire) -> None:
    lines = b"".join(b"line %d\n" % number for number in range(10_000))
    writer = threading.Thread(target=wire.stderr.write, args=(lines,))  # more than a pipe holds
    writer.start()
    with pytest.raises(TimeoutError):
        wire.channel.receive(soon(0.2))
    writer.join(5)
    assert wire.channel.tail.endswith("line 9999")
    assert len(wire.channel.tail) <= TAIL


def test_a_closed_stderr_costs_no_processor_time(wire: Wire) -> None:
    wire.stderr.close()
    before_s = time.process_time()
    with pytest.raises(TimeoutError):
        wire.channel.receive(soon(0.3))
    assert time.process_time() - before_s < 0.1
