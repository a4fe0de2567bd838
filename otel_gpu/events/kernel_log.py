r"""Reads the kernel's log, /dev/kmsg, as it grows: never waits, and never fails for long.

A record is `priority,sequence,microseconds,flags;text`, one for each read; what is not printable
stands as `\x0a`; further lines, which begin with a space, are not text (Documentation/ABI/testing/
dev-kmsg). Xid that were logged before the agent began are not told.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from otel_gpu.events.happening import Happening
from otel_gpu.events.kernel_line import BEGINNING, happening

DEVICE = Path("/dev/kmsg")
RECORD_BYTES = 16_384  # the kernel's longest is 8 KiB; into less than a record, a read fails
MOST_A_POLL = 2_000  # a flood is read over several polls, so that it cannot hold up its reader
SYSLOG_LEVELS = 8  # a priority is facility * 8 + level; the kernel's own facility is 0

REMEDIES = {
    errno.ENOENT: "mount the host's /dev/kmsg into the container",
    errno.EACCES: "grant CAP_SYSLOG, or run as root",
    errno.EPERM: "grant CAP_SYSLOG and the device, or set kernel.dmesg_restrict=0",
}

_RECORD = re.compile(rb"(?P<priority>\d{1,9}),\d+,(?P<micros>\d{1,18}),[^;]*;(?P<text>[^\n]*)")
_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")


def boot_ns() -> int:
    """Give the time since boot, by the clock that the kernel stamps its log with, nearly."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class KernelLog:
    """The log from now on. `source` is a path, or a descriptor of which each read gives a record.

    `lost` counts how often the kernel overwrote records before they were read. `reason` says why it
    cannot be read, and what to do about it; it is empty while it can.
    """

    def __init__(
        self,
        source: Path | int = DEVICE,
        *,
        unix_ns: Callable[[], int] = time.time_ns,
        since_boot_ns: Callable[[], int] = boot_ns,
        read: Callable[[int, int], bytes] = os.read,
    ) -> None:
        self.reason = ""
        self.lost = 0
        self._unix_ns = unix_ns
        self._since_boot_ns = since_boot_ns
        self._read_record = read
        self._polled_ns = unix_ns()
        self._before = ""
        self._descriptor: int | None = None
        try:
            self._descriptor = _opened(source)
        except OSError as error:
            self._ended(f"{source}: {error.strerror}", error.errno)

    def available(self) -> bool:
        """Whether the log can be read; else `reason` says why not."""
        return self._descriptor is not None

    def poll(self) -> list[Happening]:
        """Give what was logged since the last call. Does not wait."""
        now_ns = self._unix_ns()
        boot_unix_ns = now_ns - self._since_boot_ns()
        records = self._records()
        found = [self._told(record, boot_unix_ns, now_ns) for record in records]
        if len(records) < MOST_A_POLL:
            self._polled_ns = now_ns
        return [one for one in found if one is not None]

    def close(self) -> None:
        """Read no more."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _records(self) -> list[bytes]:
        records: list[bytes] = []
        while self._descriptor is not None and len(records) < MOST_A_POLL:
            try:
                record = self._read_record(self._descriptor, RECORD_BYTES)
            except BlockingIOError:
                break
            except BrokenPipeError:  # the next read goes on with the oldest that is left
                self.lost += 1
            except OSError as error:
                self._ended(f"the kernel log ended: {error.strerror}", error.errno)
            else:
                if not record:
                    self._ended("the kernel log ended")
                    break
                records.append(record)
        return records

    def _told(self, record: bytes, boot_unix_ns: int, now_ns: int) -> Happening | None:
        found = _RECORD.match(record)
        # What a process writes to the log never has the kernel's facility, so it cannot forge.
        if found is None or int(found["priority"]) >= SYSLOG_LEVELS:
            return None
        text = readable(found["text"])
        # The kernel's clock strays from the wall clock, by seconds a month; but a record that was
        # not there at the last poll is no older than that.
        stamp_ns = boot_unix_ns + int(found["micros"]) * 1_000
        told = happening(text, min(max(stamp_ns, self._polled_ns), now_ns), self._before)
        self._before = "" if told else joined(self._before, text)
        return told

    def _ended(self, what: str, number: int | None = None) -> None:
        remedy = REMEDIES.get(number or 0)
        self.reason = f"{what}; {remedy}" if remedy else what
        self.close()


def readable(text: bytes) -> str:
    r"""Undo the kernel's `\x0a` and the like; what could disturb a terminal becomes a space.

    A process chooses its own name, which stands in the text.
    """
    plain = _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), text).decode("utf-8", "replace")
    return "".join(one if one.isprintable() or one == "\n" else " " for one in plain)


def joined(before: str, text: str) -> str:
    """Keep a text that goes over several records, until it is whole or another begins."""
    if text.startswith(BEGINNING):
        return text
    goes_on = before and text.startswith("NVRM: ") and before.count("\n") < 2
    return f"{before}\n{text}" if goes_on else ""


def _opened(source: Path | int) -> int:
    """Open the log without ever waiting for it, behind all that is in it."""
    if isinstance(source, int):
        os.set_blocking(source, False)
        return source
    descriptor = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with suppress(OSError):  # a pipe in its place has no end to go to
        os.lseek(descriptor, 0, os.SEEK_END)
    return descriptor
