"""Synchronous instruments, which do need state: the stock SDK aggregates them, for each reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from opentelemetry import metrics
from opentelemetry.context import Context
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricReader, ScopeMetrics
from opentelemetry.sdk.resources import Resource
from opentelemetry.util.types import Attributes

CreateOn = Callable[[metrics.MeterProvider], Any]
"""Makes the stock instrument that stands behind one of ours, on a stock provider."""


class Fanout:
    """The stock instruments behind one of ours: one a reader, so that each has its own deltas."""

    def __init__(self, create: CreateOn) -> None:
        self.create = create
        self.stock: dict[MetricReader, Any] = {}  # replaced, never changed: recording takes no lock


class Counter(Fanout, metrics.Counter):
    """Adds to the counter of every reader."""

    def add(
        self, amount: float, attributes: Attributes = None, context: Context | None = None
    ) -> None:
        """Add an amount that is not negative."""
        for counter in self.stock.values():
            counter.add(amount, attributes, context)


class UpDownCounter(Fanout, metrics.UpDownCounter):
    """Adds to the up-down counter of every reader."""

    def add(
        self, amount: float, attributes: Attributes = None, context: Context | None = None
    ) -> None:
        """Add an amount, which may be negative."""
        for counter in self.stock.values():
            counter.add(amount, attributes, context)


class Histogram(Fanout, metrics.Histogram):
    """Records in the histogram of every reader."""

    def record(
        self, amount: float, attributes: Attributes = None, context: Context | None = None
    ) -> None:
        """Record one value."""
        for histogram in self.stock.values():
            histogram.record(amount, attributes, context)


class Gauge(Fanout, metrics._Gauge):  # noqa: SLF001 - the API has no public name for it
    """Sets the gauge of every reader."""

    def set(
        self, amount: float, attributes: Attributes = None, context: Context | None = None
    ) -> None:
        """Set the value."""
        for gauge in self.stock.values():
            gauge.set(amount, attributes, context)


class Stock:
    """A stock provider with a single reader, which has the preferences of one of our readers."""

    def __init__(self, reader: MetricReader) -> None:
        temporality = reader._preferred_temporality  # noqa: SLF001 - preferences have no public name
        aggregation = reader._instrument_class_aggregation  # noqa: SLF001 - likewise
        self._reader = InMemoryMetricReader(preferred_temporality=temporality)
        self._reader._instrument_class_aggregation = aggregation  # noqa: SLF001 - likewise
        nowhere = Resource.get_empty()  # the collection that asks hangs the points under its own
        self.provider = MeterProvider([self._reader], nowhere, shutdown_on_exit=False)

    def collect(self) -> Sequence[ScopeMetrics]:
        """Give what was recorded, by scope."""
        data = self._reader.get_metrics_data()
        return [] if data is None else data.resource_metrics[0].scope_metrics


class Synchronous:
    """Every synchronous instrument of a provider; stock providers exist once there is one."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._readers: list[MetricReader] = []
        self._instruments: list[Fanout] = []
        self._stock: dict[MetricReader, Stock] = {}

    def add(self, instrument: Fanout) -> None:
        """Let an instrument record for every reader."""
        with self._lock:
            self._instruments.append(instrument)
            for reader in self._readers:
                self._connect(instrument, reader)

    def add_reader(self, reader: MetricReader) -> None:
        """Let every instrument record for this reader too, from now on."""
        with self._lock:
            self._readers.append(reader)
            for instrument in self._instruments:
                self._connect(instrument, reader)

    def remove_reader(self, reader: MetricReader) -> None:
        """Forget a reader and what was recorded for it."""
        with self._lock:
            self._readers.remove(reader)
            self._stock.pop(reader, None)
            for instrument in self._instruments:
                instrument.stock = {
                    other: stock for other, stock in instrument.stock.items() if other is not reader
                }

    def collect(self, reader: MetricReader) -> Sequence[ScopeMetrics]:
        """Give what was recorded for a reader."""
        stock = self._stock.get(reader)
        return stock.collect() if stock else []

    def _connect(self, instrument: Fanout, reader: MetricReader) -> None:
        if reader not in self._stock:
            self._stock[reader] = Stock(reader)
        made = instrument.create(self._stock[reader].provider)
        instrument.stock = {**instrument.stock, reader: made}
