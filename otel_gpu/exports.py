"""What became of the points of one push target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits to be sent: compressed bytes, batches, points, Unix time of the oldest.

    `dropped` counts points that left the queue unsent, by reason. `on_disk` is False where it is
    kept in memory, be it that the directory fails.
    """

    size_bytes: int = 0
    batches: int = 0
    points: int = 0
    oldest_ns: int | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    on_disk: bool = False


@dataclass(frozen=True, slots=True)
class ExportStats:
    """What became of the points of one target. Immutable: a reader of it sees one moment.

    `failed` counts points by `error.type`; `missed` counts ticks that came while an export was
    under way; `last_success_ns` is Unix time, None before the first success. `backlog` is None
    where there is no queue.
    """

    exported: int = 0
    inflight: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    missed: int = 0
    last_error: str = ""
    last_success_ns: int | None = None
    backlog: Backlog | None = None
