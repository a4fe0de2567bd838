"""The kernel's log is read as it grows, from descriptors of which each read gives a record."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.events.happening import Happening
from otel_gpu.events.kernel_log import MOST_A_POLL, KernelLog, joined, readable

BOOTED_NS = 1_700_000_000_000_000_000
XID = "NVRM: Xid (PCI:0000:3b:00): 31, pid=735, name=python, MMU Fault"


class Kernel:
    """Writes records, and says what time it is."""

    def __init__(self) -> None:
        self._end, self.descriptor = socketpair()
        self.since_boot_ns = 0
        self.stray_ns = 0  # by how much the clock of the log is behind
        self.sequence = 0

    def unix_ns(self) -> int:
        return BOOTED_NS + self.since_boot_ns

    def at(self, seconds: float) -> None:
        self.since_boot_ns = int(seconds * 1e9)

    def log(self, text: str, priority: int = 4, rest: str = "") -> None:
        stamp_us = (self.since_boot_ns - self.stray_ns) // 1_000
        self.sequence += 1
        self.write(f"{priority},{self.sequence},{stamp_us},-;{text}\n{rest}".encode())

    def write(self, record: bytes) -> None:
        os.write(self._end, record)

    def close(self) -> None:
        os.close(self._end)

    def reader(self) -> KernelLog:
        return KernelLog(
            self.descriptor, unix_ns=self.unix_ns, since_boot_ns=lambda: self.since_boot_ns
        )


def socketpair() -> tuple[int, int]:
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    return ends[0].detach(), ends[1].detach()


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    kernel = Kernel()
    yield kernel
    kernel.close()


@pytest.fixture
def log(kernel: Kernel) -> Iterator[KernelLog]:
    log = kernel.reader()
    yield log
    log.close()


def codes(found: list[Happening]) -> list[int]:
    return [one.code for one in found]


def test_nothing_is_there_and_nobody_waits(log: KernelLog) -> None:
    assert log.poll() == []
    assert log.available()
    assert log.reason == ""


def test_an_xid_is_read_with_the_wall_time_at_which_it_was_logged(
    kernel: Kernel, log: KernelLog
) -> None:
    kernel.at(7_000.25)
    kernel.log(XID)
    kernel.at(7_001)
    (found,) = log.poll()
    assert (found.code, found.pid) == (31, 735)
    assert found.time_ns == BOOTED_NS + 7_000_250_000_000
    assert log.poll() == []


def test_what_is_not_the_kernels_own_is_not_believed(kernel: Kernel, log: KernelLog) -> None:
    """Root can write to /dev/kmsg; the kernel marks such a line as a user's."""
    kernel.log(XID, priority=12)
    kernel.log(XID.replace("31", "13"), priority=6)
    assert codes(log.poll()) == [13]


def test_further_lines_of_a_record_are_not_its_text(kernel: Kernel, log: KernelLog) -> None:
    kernel.log(XID, rest=" SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n")
    (found,) = log.poll()
    assert found.text == "pid=735, name=python, MMU Fault"


def test_a_text_of_several_lines_in_one_record_is_read(kernel: Kernel, log: KernelLog) -> None:
    kernel.log(
        r"NVRM: The NVIDIA GPU 0000:3b:00.0\x0aNVRM: (PCI ID: 10de:2335) installed in this system "
        r"has\x0aNVRM: fallen off the bus and is not responding to commands."
    )
    assert codes(log.poll()) == [79]


def test_a_text_of_several_lines_in_as_many_records_is_read_across_polls(
    kernel: Kernel, log: KernelLog
) -> None:
    kernel.log("NVRM: The NVIDIA GPU 0000:3b:00.0")
    kernel.log("NVRM: (PCI ID: 10de:2335) installed in this system has")
    assert log.poll() == []
    kernel.log("NVRM: fallen off the bus and is not responding to commands.")
    assert codes(log.poll()) == [79]
    kernel.log("NVRM: fallen off the bus and is not responding to commands.")
    assert log.poll() == []


class Replies:
    """Answers reads as it is told to: with a record, or with an error of the kernel's."""

    def __init__(self, *replies: str | OSError, at_us: int = 0) -> None:
        self.left = list(replies)
        self.at_us = at_us

    def __call__(self, _descriptor: int, _size: int) -> bytes:
        reply = self.left.pop(0) if self.left else BlockingIOError()
        if isinstance(reply, OSError):
            raise reply
        return f"4,1,{self.at_us},-;{reply}\n".encode()


def replying(*replies: str | OSError) -> KernelLog:
    return KernelLog(os.open(os.devnull, os.O_RDONLY), read=Replies(*replies))


def test_a_flood_is_read_in_parts_and_nothing_of_it_is_lost() -> None:
    log = replying(*[XID] * (MOST_A_POLL + 500))
    assert [len(log.poll()) for _ in range(3)] == [MOST_A_POLL, 500, 0]
    log.close()


def test_what_was_overwritten_before_it_was_read_is_counted_and_reading_goes_on() -> None:
    overwritten = BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
    log = replying(XID, overwritten, XID, XID)
    assert len(log.poll()) == 3
    assert log.available()
    assert log.lost == 1
    log.close()


def test_an_error_that_will_not_pass_ends_the_log_with_a_reason() -> None:
    log = replying(XID, OSError(errno.EINVAL, "Invalid argument"), XID)
    assert len(log.poll()) == 1
    assert log.reason == "the kernel log ended: Invalid argument"
    assert log.poll() == []


def test_a_clock_that_strays_does_not_make_an_xid_older_than_the_last_poll(
    kernel: Kernel, log: KernelLog
) -> None:
    kernel.at(5_000)
    log.poll()
    kernel.stray_ns = 9_000_000_000
    kernel.at(5_000.5)
    kernel.log(XID)
    kernel.stray_ns = -9_000_000_000
    kernel.log(XID)
    kernel.at(5_001)
    first, second = log.poll()
    assert first.time_ns == BOOTED_NS + 5_000_000_000_000
    assert second.time_ns == BOOTED_NS + 5_001_000_000_000


def test_what_a_flood_left_for_the_next_poll_keeps_its_time(kernel: Kernel) -> None:
    stamped = [*[XID] * MOST_A_POLL, XID]
    log = KernelLog(
        os.open(os.devnull, os.O_RDONLY),
        unix_ns=kernel.unix_ns,
        since_boot_ns=lambda: kernel.since_boot_ns,
        read=Replies(*stamped, at_us=3_000_000),
    )
    kernel.at(4)
    assert len(log.poll()) == MOST_A_POLL
    kernel.at(5)
    (left,) = log.poll()
    assert left.time_ns == BOOTED_NS + 3_000_000_000
    log.close()


def test_the_log_of_a_kernel_that_is_gone_ends_with_a_reason(
    kernel: Kernel, log: KernelLog
) -> None:
    kernel.log(XID)
    os.set_blocking(kernel._end, False)
    os.close(kernel._end)
    kernel._end = os.open(os.devnull, os.O_WRONLY)
    assert codes(log.poll()) == [31]
    assert (log.available(), log.reason) == (False, "the kernel log ended")
    assert log.poll() == []


def test_a_pipe_can_stand_for_the_device(tmp_path: Path) -> None:
    path = tmp_path / "kmsg"
    os.mkfifo(path)
    end = os.open(path, os.O_RDWR)
    log = KernelLog(path)
    assert log.available()
    os.write(end, f"4,1,0,-;{XID}\n".encode())
    assert codes(log.poll()) == [31]
    log.close()
    log.close()
    os.close(end)
    assert log.poll() == []


def test_a_device_that_is_not_there_is_named_with_what_to_do(tmp_path: Path) -> None:
    log = KernelLog(tmp_path / "kmsg")
    assert not log.available()
    assert log.reason.startswith(f"{tmp_path / 'kmsg'}: No such file or directory; mount the host")
    assert log.poll() == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_device_that_may_not_be_read_is_named_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "kmsg"
    path.touch(mode=0)
    assert "CAP_SYSLOG" in KernelLog(path).reason


def test_a_descriptor_that_cannot_be_read_is_no_log(tmp_path: Path) -> None:
    log = KernelLog(os.open(tmp_path, os.O_RDONLY))
    assert log.poll() == []
    assert os.strerror(errno.EISDIR) in log.reason


def test_what_was_logged_before_is_not_told(tmp_path: Path) -> None:
    path = tmp_path / "kmsg"
    path.write_text(f"4,1,0,-;{XID}\n", encoding="ascii")
    assert KernelLog(path).poll() == []


def test_the_real_device_can_be_read_and_nobody_waits() -> None:
    log = KernelLog()
    if not log.available():
        pytest.skip(log.reason)
    log.poll()
    assert log.reason == ""
    log.close()


@given(st.lists(st.binary(min_size=1, max_size=200), max_size=20))
def test_whatever_the_records_are_a_poll_never_fails(records: list[bytes]) -> None:
    kernel = Kernel()
    log = kernel.reader()
    for record in records:
        kernel.write(record)
    assert log.poll() == []
    assert log.available()
    log.close()
    kernel.close()


@given(st.text(max_size=60))
def test_what_the_kernel_escapes_becomes_readable_and_harmless(text: str) -> None:
    escaped = b"".join(
        bytes([byte]) if 32 <= byte < 127 and byte != 0x5C else b"\\x%02x" % byte
        for byte in text.encode("utf-8", "replace")
    )
    plain = readable(escaped)
    assert all(one.isprintable() or one == "\n" for one in plain)
    visible = [one for one in text.encode("utf-8", "replace").decode() if one.isprintable()]
    assert [one for one in plain if one not in " \n"] == [one for one in visible if one != " "]


def test_only_a_text_that_began_is_kept_and_not_for_long() -> None:
    begun = "NVRM: The NVIDIA GPU 0000:3b:00.0"
    assert joined("", begun) == begun
    assert joined(begun, "NVRM: one") == f"{begun}\nNVRM: one"
    assert joined(f"{begun}\nNVRM: one\nNVRM: two", "NVRM: three") == ""
    assert joined(begun, "usb 1-1: new device") == ""
    assert joined("", "NVRM: one") == ""
