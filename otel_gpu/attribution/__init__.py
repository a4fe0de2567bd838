"""Whose GPU is it: sources of owners, each behind the same two words.

A source answers by GPU UUID and says of itself whether its answer is of now. It is read by the
sampler's clock, never by a scrape or a push.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from otel_gpu.model import Device, Owner, Point, Snapshot

Owners = Mapping[str, tuple[Owner, ...]]


class Health(NamedTuple):
    """Whether a source could be read, and if not, why in one word and in one sentence."""

    name: str
    up: bool
    reason: str = ""
    detail: str = ""


class Source(Protocol):
    """Something that knows who holds which GPU."""

    def owners(self, devices: Sequence[Device]) -> Owners:
        """Give the owners of these GPUs; the last answer while the source cannot be read."""

    def health(self) -> Health:
        """Say how the last reading went."""


def gathered(sources: Iterable[Source], devices: Sequence[Device]) -> Owners:
    """Ask every source, and put several owners of one GPU beside each other."""
    found: dict[str, tuple[Owner, ...]] = {}
    for source in sources:
        for uuid, owners in source.owners(devices).items():
            held = found.get(uuid, ())
            found[uuid] = held + tuple(owner for owner in owners if owner not in held)
    return found


def allocation(snapshot: Snapshot) -> Iterable[tuple[str, Point]]:
    """Give the points of `nvidia.gpu.allocation`: one for each owner of each GPU."""
    for uuid, owners in snapshot.owners.items():
        shared = (("nvidia.gpu.shared", len(owners) > 1),)
        for owner in owners:
            yield uuid, Point(1, owner.attributes + shared)
