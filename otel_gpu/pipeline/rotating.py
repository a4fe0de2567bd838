"""A file of lines, bounded in size: when it is full it is put aside, and begun anew."""

from __future__ import annotations

import os
from io import FileIO
from pathlib import Path

MODE = 0o640
"""Of new files: they name who uses a GPU. A reader of another user goes into the file's group."""


class RotatingFile:
    """Appends whole lines; those put aside are `path`.1, the newest, to `path`.`keep`.

    No file is larger than `limit` bytes, but for a line that alone is. The standard library's
    RotatingFileHandler counts characters, reports errors to standard error only, and never begins
    anew when nothing is to be kept.

    The file is opened for each line: others may rename, empty or remove it at any time, as
    logrotate does. A line is in the kernel's hands when `append` returns, so it outlives the
    process, though not a loss of power.
    """

    def __init__(self, path: Path, limit: int, keep: int) -> None:
        self.path = Path(os.path.realpath(path))  # a link stays; what it leads to is put aside
        self._limit = limit
        self._keep = keep

    def prepare(self) -> None:
        """Make the file where there is none, and see whether it can be put aside.

        Raises OSError, whose `filename` says what the trouble is with.
        """
        if self.path.exists() and not self.path.is_file():  # to open a pipe would wait for a reader
            raise OSError(0, "not a regular file", str(self.path))
        self._open().close()
        folder = self.path.parent
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(0, "no file can be put aside in it", str(folder))

    def append(self, line: bytes) -> None:
        """Append a line, which ends with a newline: all of it, or nothing. Raises OSError."""
        with self._open() as file:
            size, text = _after(file, line)
            if not size or size + len(text) <= self._limit:
                _write(file, text, size)
                return
        self._put_aside()
        with self._open() as file:
            size, text = _after(file, line)
            _write(file, text, size)

    def _open(self) -> FileIO:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        return FileIO(os.open(self.path, flags, MODE), "a+")

    def _put_aside(self) -> None:
        """Move each file one number up, as far as the first number that is free."""
        if not self._keep:
            self.path.unlink()
            return
        kept = range(1, self._keep + 1)
        free = next((number for number in kept if not self._aside(number).exists()), self._keep)
        for number in range(free, 1, -1):
            self._aside(number - 1).replace(self._aside(number))
        self.path.replace(self._aside(1))

    def _aside(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")


def _after(file: FileIO, line: bytes) -> tuple[int, bytes]:
    """Give the size of a file, and what to write: half a line, left by a crash, is ended first."""
    size = file.seek(0, os.SEEK_END)
    if not size:
        return 0, line
    file.seek(size - 1)
    return size, line if file.read(1) == b"\n" else b"\n" + line


def _write(file: FileIO, text: bytes, size: int) -> None:
    """Append to a file of this size, or leave it as it was."""
    try:
        while text:
            text = text[file.write(text) :]
    except OSError:
        file.truncate(size)  # a full disk takes a part of it first
        raise
