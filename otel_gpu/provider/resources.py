"""Which SDK Resource a series goes under, remembered only while its key is live."""

from __future__ import annotations

from collections.abc import Callable

from opentelemetry.sdk.resources import Resource

from otel_gpu.model import ResourceKey

MakeResource = Callable[[ResourceKey], Resource]


class Lookup(dict[ResourceKey, Resource]):
    """The Resources that one collection has asked for.

    Equal Resources are one object: the official OTLP encoder keys its messages by Resource and
    loses all but the last of two equal ones.
    """

    def __init__(self, make: MakeResource, before: dict[ResourceKey, Resource]) -> None:
        super().__init__()
        self.before = before
        self._make = make
        self._distinct: dict[Resource, Resource] | None = None

    def __missing__(self, key: ResourceKey) -> Resource:
        resource = self.before.get(key)
        if resource is None:
            resource = self._first_equal(self._make(key))
        self[key] = resource
        return resource

    def _first_equal(self, resource: Resource) -> Resource:
        """Give the Resource that is used already and equal to this one, or this one."""
        if self._distinct is None:  # hashing a Resource is slow: only where a new key appeared
            self._distinct = {known: known for known in (*self.before.values(), *self.values())}
        return self._distinct.setdefault(resource, resource)


class Resources:
    """Makes Resources, and keeps those that the last collection asked for: nothing else.

    So a pod that is gone leaves nothing behind, however many come and go.
    """

    def __init__(self, make: MakeResource) -> None:
        self._make = make
        self._kept: dict[ResourceKey, Resource] = {}

    def lookup(self) -> Lookup:
        """Begin a collection."""
        return Lookup(self._make, self._kept)

    def keep(self, lookup: Lookup) -> None:
        """End a collection; ignored when `forget` or another collection came in between."""
        if self._kept is lookup.before:
            self._kept = dict(lookup)  # not the lookup: it holds the ones before, and they theirs

    def forget(self) -> None:
        """Make every Resource anew, because what they are made from has changed."""
        self._kept = {}
