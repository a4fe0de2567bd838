"""What was made, kept for as long as it is asked for: what vanished leaves nothing behind."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Made = TypeVar("Made")


class Kept(Generic[Made]):
    """Values by key. One that a turn did without is forgotten at its end."""

    def __init__(self) -> None:
        self._now: dict[Hashable, Made] = {}
        self._before: dict[Hashable, Made] = {}

    def __len__(self) -> int:
        return len(self._now)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Take a turn: only what is kept in it stays."""
        self._now, self._before = {}, self._now
        try:
            yield
        finally:
            self._before = {}

    def get(self, key: Hashable) -> Made | None:
        """Give what is kept."""
        return self._now.get(key, self._before.get(key))

    def keep(self, key: Hashable, made: Made) -> Made:
        """Keep it until the end of the next turn."""
        self._now[key] = made
        return made
