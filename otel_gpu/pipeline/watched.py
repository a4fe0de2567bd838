"""Something that is made from files, and made anew when one of them has changed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

from otel_gpu.model import ConfigError

log = logging.getLogger(__name__)

Made = TypeVar("Made")


class Watched(Generic[Made]):
    """Gives what the files say now: a certificate or a token that is rotated needs no restart.

    `files` says which they are. They are looked at when somebody asks, at most once in `every_s`
    seconds. What cannot be read is told once, and what was made before stays. `make` raises
    ConfigError, at first also here.
    """

    def __init__(
        self,
        make: Callable[[], Made],
        files: Callable[[Made], Sequence[Path]],
        every_s: float = 0.0,
    ) -> None:
        self._make = make
        self._files = files
        self._every_s = every_s
        self._lock = Lock()
        self._made = make()
        self._seen = _signatures(files(self._made))
        self._looked_s = time.monotonic()

    def current(self) -> Made:
        """Give what was made last, after a look at the files."""
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._looked_s >= self._every_s:
                self._looked_s = now_s
                self._look()
            return self._made

    def _look(self) -> None:
        named = self._files(self._made)
        seen = _signatures(named)
        if seen == self._seen:
            return
        # As they were before they are read: what is written meanwhile is a change again. Also for
        # what cannot be read, so that it is told once, and tried at the next change.
        self._seen = seen
        try:
            self._made = self._make()
        except ConfigError as error:
            log.warning("%s; what was read before is used", error)
        if (now := self._files(self._made)) != named:
            self._seen = _signatures(now)


def _signatures(paths: Sequence[Path]) -> list[tuple[int, ...]]:
    return [_signature(path) for path in paths]


def _signature(path: Path) -> tuple[int, ...]:
    """Tell one content of a file from the next, behind symbolic links too; () where none is."""
    try:
        stat = path.stat()
    except OSError:
        return ()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
