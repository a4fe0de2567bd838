"""What the tests do to a `Faulty` backend, from outside its process."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tests.worker.faulty import Faulty


class Faults:
    """The directory of a `Faulty` backend: which faults there are right now."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.backend = f"python:{Faulty.__module__}:Faulty:{directory}"

    def start(self, name: str, text: str = "") -> None:
        (self._directory / name).write_text(text)

    def stop(self, name: str) -> None:
        (self._directory / name).unlink()

    @property
    def closed(self) -> bool:
        """Whether the backend was closed."""
        return (self._directory / "closed").exists()


def eventually(condition: Callable[[], bool], within_s: float = 15.0) -> bool:
    """Wait for something that another process does."""
    until_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > until_s:
            return False
        time.sleep(0.01)
    return True
