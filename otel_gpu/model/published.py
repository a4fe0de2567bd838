"""What is published: snapshots, who holds which GPU, and the identity of each series."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from otel_gpu.model.driver import Device, System
from otel_gpu.model.metrics import Attributes, AttributeValue, Gap, Reading


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a GPU: what stands on each point, and what only its Resource carries."""

    attributes: Attributes  # k8s.namespace.name, k8s.pod.name, k8s.container.name, slurm.*, ...
    resource: Attributes = ()  # k8s.pod.uid


class Account(NamedTuple):
    """What an owner used of a GPU, in joules or in seconds, since `start_ns` (Unix nanoseconds).

    `owner` None is what is nobody's. `method` says how it was found out.
    """

    uuid: str
    owner: Owner | None
    method: str
    start_ns: int
    used: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that is published at one moment. Immutable; the ways out read nothing else.

    `devices` holds every GPU that was ever seen, so that one that is gone keeps its identity; `up`
    says which of them answered last. `trouble` is empty while the driver is open.
    """

    time_ns: int = 0
    read_s: float = 0.0  # monotonic
    system: System = field(default_factory=System)
    devices: Mapping[str, Device] = field(default_factory=dict)  # by UUID
    up: Mapping[str, bool] = field(default_factory=dict)  # by UUID
    readings: tuple[Reading, ...] = ()
    gaps: tuple[Gap, ...] = ()
    owners: Mapping[str, tuple[Owner, ...]] = field(default_factory=dict)  # by UUID
    holders: Mapping[tuple[str, int], Owner] = field(default_factory=dict)  # by UUID and pid
    shared: frozenset[str] = frozenset()  # UUIDs of those of which others than the owner use a part
    energy: tuple[Account, ...] = ()  # J
    held: tuple[Account, ...] = ()  # s
    hung: tuple[tuple[str, str], ...] = ()  # (NVML function, UUID)
    trouble: str = ""

    def is_shared(self, uuid: str) -> bool:
        """Whether more than one uses a part of a GPU, so that what it does is nobody's alone."""
        return uuid in self.shared or len(self.owners.get(uuid, ())) > 1


class ResourceKey(NamedTuple):
    """Which Resource a series belongs to: the node ("" and None), a GPU, or a GPU and its owner."""

    device: str = ""
    owner: Owner | None = None


NODE = ResourceKey()


@dataclass(eq=False, slots=True)
class Series:
    """The identity of one stream of points, made once and kept while the stream lives.

    The ways out keep what they derived from it (label text, encoded attributes) in `memo`, under a
    key of their own, so that a scrape or a push writes only the value.
    """

    attributes: Mapping[str, AttributeValue]
    resource: ResourceKey = NODE
    start_ns: int | None = None
    memo: dict[Hashable, Any] = field(default_factory=dict)
