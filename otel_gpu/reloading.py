"""When to read the configuration again: somebody says so (SIGHUP), or its file has changed."""

from __future__ import annotations

from pathlib import Path

Signature = tuple[int, ...]


class Changes:
    """Follows one file. A ConfigMap's links are followed, so that their exchange is a change.

    `seen` is asked every second or so: what has just been written may be half of it, so a change is
    one when the file was the same at two looks.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._read = self._before = signature(path)

    def seen(self) -> bool:
        """Whether the file is another than the one that was told of last, and rests."""
        now, before = signature(self._path), self._before
        self._before = now
        if now != before or now == self._read:
            return False
        self._read = now
        return True


def signature(path: Path | None) -> Signature:
    """Tell one content of a file from the next, behind symbolic links too; () where none is."""
    if path is None:
        return ()
    try:
        stat = path.stat()
    except OSError:
        return ()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino, stat.st_dev
