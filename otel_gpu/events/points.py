"""What a tally counted, as the points of the metrics in `catalog/events.py`. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator

from otel_gpu.events.codes import XidClass, explained
from otel_gpu.events.tally import Tally
from otel_gpu.model import Point, Snapshot

Points = Iterable[tuple[str, Point]]

ZERO_S = 65.0
"""How long a new code is shown as 0: longer than most scrape intervals."""


def errors(tally: Tally, snapshot: Snapshot, unheard: Container[str] = ()) -> Points:
    """Count the Xids of each GPU by class, from 0.

    `unheard` are GPUs of which neither source can tell: nobody knows that nothing happened there,
    so they have no points.
    """
    for uuid in listened(snapshot, unheard):
        counts: Counter[XidClass] = Counter()
        for (where, code), count in tally.counts.items():
            if where == uuid:
                counts[explained(code).reach] += count.total
        for reach in XidClass:
            key = (("nvidia.gpu.xid.class", str(reach)),)
            yield uuid, Point(counts[reach], key, tally.since_ns)


def code_errors(
    tally: Tally, snapshot: Snapshot, unheard: Container[str] = (), zero_s: float = ZERO_S
) -> Points:
    """Count the Xids of each GPU by code; a code that never came has no point.

    A new code is shown as 0 until it was heard of for `zero_s`, so that every reader that collects
    more often than that has seen the 0, and PromQL's `increase()` the first Xid. Whoever must know
    at once reads the classes, which are there from the start, or the log record.
    """
    uuids = frozenset(listened(snapshot, unheard))
    for (where, code), count in tally.counts.items():
        if where in uuids:
            is_new = tally.now_s - count.first_s < zero_s
            key = (("nvidia.gpu.xid", str(code)),)
            yield where, Point(0 if is_new else count.total, key, tally.since_ns)


def listened(snapshot: Snapshot, unheard: Container[str]) -> Iterator[str]:
    """Give the GPUs that have counters: not the instances on them, whose Xids are theirs."""
    for uuid, device in snapshot.devices.items():
        if not device.is_instance and uuid not in unheard:
            yield uuid
