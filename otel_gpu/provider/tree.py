"""What one collection found, as the SDK's tree: Resource, scope, metric."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from opentelemetry.sdk.metrics.export import Metric, MetricsData, ResourceMetrics, ScopeMetrics
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope


class Tree:
    """Metrics by Resource and scope, told apart by their identities: hashing them is slow."""

    def __init__(self) -> None:
        self._branches: dict[int, _Branch] = {}

    def add(
        self, resource: Resource, scope: InstrumentationScope, metrics: Iterable[Metric]
    ) -> None:
        """Hang metrics under a Resource and scope."""
        branch = self._branches.get(id(resource))
        if branch is None:
            branch = self._branches[id(resource)] = _Branch(resource, {})
        twig = branch.twigs.get(id(scope))
        if twig is None:
            twig = branch.twigs[id(scope)] = (scope, [])
        twig[1].extend(metrics)

    def data(self) -> MetricsData | None:
        """Give the tree, or None where there is nothing: readers then export nothing."""
        if not self._branches:
            return None
        return MetricsData([branch.data() for branch in self._branches.values()])


class _Branch(NamedTuple):
    """What hangs under one Resource."""

    resource: Resource
    twigs: dict[int, tuple[InstrumentationScope, list[Metric]]]

    def data(self) -> ResourceMetrics:
        scopes = [
            ScopeMetrics(scope, metrics, scope.schema_url or "")
            for scope, metrics in self.twigs.values()
        ]
        return ResourceMetrics(self.resource, scopes, self.resource.schema_url)
