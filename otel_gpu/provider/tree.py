"""What one collection found, as the SDK's tree: Resource, scope, metric."""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.sdk.metrics.export import Metric, MetricsData, ResourceMetrics, ScopeMetrics
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope


class Tree:
    """Metrics by Resource and scope; a Resource is told from another by its identity."""

    def __init__(self) -> None:
        self._branches: dict[int, tuple[Resource, dict[InstrumentationScope, list[Metric]]]] = {}

    def add(
        self, resource: Resource, scope: InstrumentationScope, metrics: Iterable[Metric]
    ) -> None:
        """Hang metrics under a Resource and scope."""
        scopes = self._branches.setdefault(id(resource), (resource, {}))[1]
        scopes.setdefault(scope, []).extend(metrics)

    def data(self) -> MetricsData | None:
        """Give the tree, or None where there is nothing: readers then export nothing."""
        if not self._branches:
            return None
        return MetricsData([_branch(*branch) for branch in self._branches.values()])


def _branch(
    resource: Resource, scopes: dict[InstrumentationScope, list[Metric]]
) -> ResourceMetrics:
    return ResourceMetrics(
        resource,
        [ScopeMetrics(scope, metrics, scope.schema_url or "") for scope, metrics in scopes.items()],
        resource.schema_url,
    )
