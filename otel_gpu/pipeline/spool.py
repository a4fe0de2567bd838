"""A directory that keeps batches: one file each, so that there is nothing to compact or to seek.

A file is written under another name and then renamed: whoever is killed leaves whole files, and at
most one that is half written, which the next start removes. `remove` makes a batch delivered, so a
kill between the target's answer and that can send one batch twice, and no more.

Files are not synced: the agent must not wait for a busy disk. A process that is killed loses
nothing by that; a machine that loses power may leave a torn record, which its checksum shows.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from otel_gpu.model import ConfigError
from otel_gpu.pipeline.batch import Batch
from otel_gpu.pipeline.record import FORMAT, TornError, read, written

_NAME = re.compile(r"([0-9a-f]{16})-([0-9]{1,19})-([0-9]{1,9})\.batch")
"""Number in the order of the batches, Unix time of the collection in nanoseconds, points."""
_HALF = ".half"
_KEY = "pipeline.otlp.queue.directory"

log = logging.getLogger(__name__)


class Filed(NamedTuple):
    """What a file's name and size tell of a batch: enough to count it without reading it."""

    name: str
    collected_ns: int
    points: int
    size_bytes: int


class Spool:
    """One directory of one agent. `left` is what earlier runs left there, oldest first.

    Raises ConfigError when it cannot be used.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock: int | None = _locked(directory / "lock")
            try:
                _check_format(directory / "format")
            except ConfigError:
                self.close()
                raise
        except OSError as error:
            raise ConfigError(f"{_KEY}: {directory}: {error.strerror}") from error
        if directory.stat().st_mode & 0o077:
            log.warning("%s: %s can be entered by other users than the agent's", _KEY, directory)
        self.left = sorted(self._found())  # the number comes first in a name
        self._next = int(self.left[-1].name[:16], 16) + 1 if self.left else 0

    def write(self, batch: Batch) -> Filed:
        """Keep a batch. Raises OSError, and then leaves nothing behind."""
        content = written(batch)
        name = f"{self._next:016x}-{batch.collected_ns}-{batch.points}.batch"
        half = self.directory / (name + _HALF)
        try:
            _write(half, content)
            half.rename(self.directory / name)
        except OSError:
            self._unlink(half)
            raise
        self._next += 1
        return Filed(name, batch.collected_ns, batch.points, len(content))

    def read(self, filed: Filed) -> Batch:
        """Give a batch back. Raises TornError, also where its file is gone, or OSError."""
        path = self.directory / filed.name
        try:
            return read(path.read_bytes())
        except FileNotFoundError as error:
            raise TornError(f"{path}: its file is gone") from error
        except TornError as error:
            raise TornError(f"{path}: {error}") from error

    def remove(self, filed: Filed) -> None:
        """Forget a batch. One that cannot be removed is sent again after the next start."""
        self._unlink(self.directory / filed.name)

    def close(self) -> None:
        """Let another agent have the directory."""
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def _found(self) -> Iterator[Filed]:
        with os.scandir(self.directory) as entries:
            for entry in entries:
                if match := _NAME.fullmatch(entry.name):
                    yield Filed(entry.name, int(match[2]), int(match[3]), entry.stat().st_size)
                elif entry.name.endswith(f".batch{_HALF}"):  # by an agent that was killed
                    self._unlink(Path(entry.path))

    def _unlink(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("%s: %s cannot be removed: %s", _KEY, path, error.strerror)


def _write(path: Path, content: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with memoryview(content) as rest:
            done = 0
            while done < len(rest):
                done += os.write(file, rest[done:])
    finally:
        os.close(file)


def _locked(path: Path) -> int:
    """Take the lock, which the kernel gives back however the process ends."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(lock, 32, 0).decode(errors="replace").strip() or "unknown"
        os.close(lock)
        raise ConfigError(
            f"{_KEY}: {path.parent} is in use by another agent (process {holder}); "
            "give each agent, and each target, a directory of its own"
        ) from error
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock


def _check_format(path: Path) -> None:
    """Refuse what a newer version wrote; claim a directory that nobody has written to."""
    try:
        found = path.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        _write(path, f"{FORMAT}\n".encode())
        return
    if found and found != str(FORMAT):
        raise ConfigError(
            f"{_KEY}: {path.parent} was written in format {found[:20]}, and this version of "
            f"otel-gpu knows {FORMAT}: use the version that wrote it, or another directory"
        )
