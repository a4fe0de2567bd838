"""What happened, counted, and what should not have: any thread tells."""

from __future__ import annotations

from collections import Counter
from threading import Lock

MOST_TOLD = 20  # of what should not have happened; the rest is counted


class Tally:
    """Counts by name. `failures` are sentences, each with the second of the run."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[str] = Counter()
        self.failures: list[str] = []

    def add(self, name: str, count: int = 1) -> None:
        """Count something."""
        with self._lock:
            self._counts[name] += count

    def fail(self, what: str, now_s: float) -> None:
        """Note what should not have happened."""
        with self._lock:
            self._counts["failures"] += 1
            if len(self.failures) < MOST_TOLD:
                self.failures.append(f"at {now_s:.0f} s: {what}")

    def count(self, prefix: str) -> int:
        """Give how often something with this beginning happened."""
        with self._lock:
            return sum(count for name, count in self._counts.items() if name.startswith(prefix))

    def counts(self) -> dict[str, int]:
        """Give all counts by name."""
        with self._lock:
            return dict(sorted(self._counts.items()))
