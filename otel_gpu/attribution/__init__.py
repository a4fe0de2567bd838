"""Whose GPU is it: sources of owners, each behind the same two words.

A source is shown the GPUs and the processes on them, and answers by GPU and by process. It is asked
in a thread of its own (`patient`), by the sampler's clock, never by a scrape or a push. `workloads`
counts what each owner used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from otel_gpu.model import Attributes, Device, Owner, Point, Snapshot

Owners = Mapping[str, tuple[Owner, ...]]
"""Who was given which GPU or MIG instance, by UUID."""

Holders = Mapping[tuple[str, int], Owner]
"""Whose a process is, by UUID and pid: a process on two GPUs may run in one container on each."""

NONE: Mapping[Any, Any] = MappingProxyType({})

SHARED = "nvidia.gpu.shared"


class View(NamedTuple):
    """What a source is shown.

    `devices` are all that were enumerated; `pids` the processes on each, by UUID. `blind` says why
    there are none to be seen, and is empty where they are.
    """

    devices: Sequence[Device] = ()
    pids: Mapping[str, tuple[int, ...]] = NONE
    blind: str = ""


class Claims(NamedTuple):
    """What a source knows: to whom GPUs were given, and whose the processes on them are."""

    owners: Owners = NONE
    holders: Holders = NONE


class Ownership(NamedTuple):
    """What all sources know, put together.

    `shared` names the GPUs of which more than one uses a part: several owners, or one and somebody
    whom no source knows.
    """

    owners: Owners = NONE
    holders: Holders = NONE
    shared: frozenset[str] = frozenset()


class Health(NamedTuple):
    """Whether a source could be read, and if not, why in one word and in one sentence.

    `detail` may also say what was odd in an answer. `dormant`: nobody insisted on it, and there is
    nothing of its kind here. `held_s` is how old the answer is that is kept while it is not up.
    """

    name: str
    up: bool
    reason: str = ""
    detail: str = ""
    dormant: bool = False
    held_s: float | None = None


class Source(Protocol):
    """Something that knows who holds which GPU. It is asked by one thread at a time."""

    def claims(self, view: View) -> Claims:
        """Say who holds these GPUs; the last answer while the source cannot be read."""

    def health(self) -> Health:
        """Say how the last reading went."""

    def close(self) -> None:
        """Release what is held: connections, threads."""


def gathered(claims: Iterable[Claims], view: View) -> Ownership:
    """Put what several sources know beside each other; the first that knows a process is right.

    To whom a GPU was given counts before whose processes are on it: those come and go.
    """
    owners: dict[str, tuple[Owner, ...]] = {}
    holders: dict[tuple[str, int], Owner] = {}
    for claim in claims:
        for uuid, given in claim.owners.items():
            held = owners.get(uuid, ())
            owners[uuid] = held + tuple(owner for owner in given if owner not in held)
        holders = {**claim.holders, **holders}
    shared = {uuid for uuid, several in owners.items() if len(several) > 1}
    for uuid, pids in view.pids.items():
        if uuid in owners:
            continue
        found = dict.fromkeys(holders.get((uuid, pid)) for pid in sorted(pids))
        if len(found) > 1:
            shared.add(uuid)
        if known := tuple(owner for owner in found if owner):
            owners[uuid] = known
    return Ownership(owners, holders, frozenset(shared & owners.keys()))


def allocation(snapshot: Snapshot) -> Iterable[tuple[str, Point]]:
    """Give the points of `nvidia.gpu.allocation`: one for each owner of each GPU."""
    for uuid, owners in snapshot.owners.items():
        shared: Attributes = ((SHARED, snapshot.is_shared(uuid)),)
        for owner in owners:
            yield uuid, Point(1, owner.attributes + shared)
