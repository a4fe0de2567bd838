"""The agent's MeterProvider: OpenTelemetry's API and readers, collected without per-series state.

The stock SDK remembers every attribute set that it ever saw, folds those beyond 2,000 into one, and
spends 25 to 50 microseconds on each observation. Here an observable instrument's callbacks are run
when a reader collects, and what they give becomes `MetricsData` at once: no limit, and a series
that is not observed any more is gone.
"""

from __future__ import annotations

import atexit
import logging
from collections.abc import Callable, Collection, Sequence
from functools import partial
from threading import Lock
from typing import Any

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions
from opentelemetry.sdk.metrics.export import MetricReader, MetricsData
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.util.types import Attributes

from otel_gpu.clock import steady
from otel_gpu.model import NODE
from otel_gpu.points import Points, SeriesPoint
from otel_gpu.provider.bounded import run_all
from otel_gpu.provider.meter import Meter
from otel_gpu.provider.observables import FindResource, SeriesObservation
from otel_gpu.provider.resources import MakeResource, Resources
from otel_gpu.provider.synchronous import Synchronous
from otel_gpu.provider.tree import Tree

__all__ = ["MeterProvider", "Points", "SeriesObservation", "SeriesPoint"]

log = logging.getLogger(__name__)


class MeterProvider(metrics.MeterProvider):
    """Collects for any OpenTelemetry reader; `resources` makes the Resource of a key.

    Without it there is one, that of the SDK's own detectors.

    A callback may yield `Observation`, which goes under the node's Resource, or objects with a
    `value` and a `series`, which go under the Resource of `series.resource`. Callbacks may be run
    for several readers at the same time. Observable counters are always cumulative; a reader's
    temporality and aggregation apply to synchronous instruments.

    Readers in `one_resource` get everything under the node's Resource: the official
    `PrometheusMetricReader` mixes up label values and `target_info` when it gets several.
    """

    def __init__(
        self,
        readers: Sequence[MetricReader] = (),
        resources: MakeResource | None = None,
        *,
        one_resource: Collection[MetricReader] = (),
        shutdown_on_exit: bool = True,
    ) -> None:
        self._resources = Resources(resources or _one_for_all())
        self._synchronous = Synchronous()
        self._lock = Lock()
        self._meters: dict[InstrumentationScope, Meter] = {}
        self._readers: tuple[MetricReader, ...] = ()
        self._is_shut_down = False
        for reader in readers:
            self.add_metric_reader(reader, one_resource=reader in one_resource)
        if shutdown_on_exit:
            atexit.register(self.shutdown)

    def get_meter(
        self,
        name: str,
        version: str | None = None,
        schema_url: str | None = None,
        attributes: Attributes = None,
    ) -> metrics.Meter:
        """Give the meter of a scope: the same one for the same arguments."""
        if self._is_shut_down or not name:
            log.warning("no meter %r: it has no name, or the provider is shut down", name)
            return metrics.NoOpMeter(name, version=version, schema_url=schema_url)
        scope = InstrumentationScope(name, version, schema_url, attributes)
        with self._lock:
            if scope not in self._meters:
                self._meters[scope] = Meter(scope, self._synchronous)
            return self._meters[scope]

    def add_metric_reader(self, reader: MetricReader, *, one_resource: bool = False) -> None:
        """Let a reader collect, from now on. Raises ValueError if it does already."""
        with self._lock:
            if reader in self._readers:
                raise ValueError(f"{reader!r} is a reader of this provider already")
            self._readers += (reader,)
        self._synchronous.add_reader(reader)
        collect: Any = partial(self._collect, one_resource=one_resource)
        reader._set_collect_callback(collect)  # noqa: SLF001 - how a reader learns whom to ask
        if hasattr(reader, "_set_meter_provider"):  # newer SDKs: for a reader's own metrics
            reader._set_meter_provider(self)  # noqa: SLF001 - likewise

    def remove_metric_reader(self, reader: MetricReader, timeout_millis: float = 30_000) -> None:
        """Shut a reader down, which may flush it, and forget it. Raises ValueError if unknown."""
        if reader not in self._readers:
            raise ValueError(f"{reader!r} is not a reader of this provider")
        self._on_readers("shutdown", (reader,), timeout_millis)
        with self._lock:
            self._readers = tuple(other for other in self._readers if other is not reader)
        self._synchronous.remove_reader(reader)
        reader._set_collect_callback(None)  # noqa: SLF001 - as when it was added

    def forget_resources(self) -> None:
        """Make Resources anew at the next collection: what they are made from has changed."""
        self._resources.forget()

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Let every reader collect and send; whether all of them did within the time."""
        return self._on_readers("force_flush", self._readers, timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000) -> None:
        """Flush and stop every reader, all at once, and return within the time in any case."""
        with self._lock:
            again, self._is_shut_down = self._is_shut_down, True
        if again:
            log.warning("the meter provider is shut down already")
            return
        atexit.unregister(self.shutdown)
        self._on_readers("shutdown", self._readers, timeout_millis)

    def _on_readers(
        self, method: str, readers: Sequence[MetricReader], timeout_millis: float
    ) -> bool:
        def task(reader: MetricReader) -> Callable[[float], object]:
            return lambda millis: getattr(reader, method)(timeout_millis=millis)

        troubles = run_all([task(reader) for reader in readers], timeout_millis)
        for reader, trouble in zip(readers, troubles, strict=True):
            if trouble:
                log.warning("%s: %s %s", type(reader).__name__, method, trouble)
        return not any(troubles)

    def _collect(
        self, reader: MetricReader, timeout_millis: float = 10_000, *, one_resource: bool = False
    ) -> MetricsData | None:
        """Run every callback for a reader: what the SDK calls when the reader collects."""
        lookup = self._resources.lookup()
        find = (lambda _key: lookup[NODE]) if one_resource else lookup.__getitem__
        tree = Tree()
        self._observe(tree, CallbackOptions(timeout_millis), find)
        for scope_metrics in self._synchronous.collect(reader):
            ours = self._meters.get(scope_metrics.scope)  # whose scope is equal
            scope = ours.scope if ours else scope_metrics.scope
            tree.add(lookup[NODE], scope, scope_metrics.metrics)
        self._resources.keep(lookup)
        return tree.data()

    def _observe(self, tree: Tree, options: CallbackOptions, find: FindResource) -> None:
        time_ns = steady.unix_ns()
        for meter in tuple(self._meters.values()):
            for instrument in meter.observables:
                for resource, columns in instrument.found(options, find).values():
                    tree.add(resource, meter.scope, (instrument.metric(columns, time_ns),))


def _one_for_all() -> MakeResource:
    resource = Resource.create()  # now: its detectors start threads, which an exit cannot do
    return lambda _key: resource
