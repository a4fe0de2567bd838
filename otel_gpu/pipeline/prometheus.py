"""The Prometheus endpoint: a reader that collects when it is scraped."""

from __future__ import annotations

import socket
from threading import Lock
from typing import Any

from opentelemetry.sdk.metrics.export import MetricReader, MetricsData

from otel_gpu.config import Prometheus, split_address
from otel_gpu.model import ConfigError
from otel_gpu.pipeline import Context
from otel_gpu.pipeline.app import App
from otel_gpu.pipeline.exposition import Exposition, Format
from otel_gpu.pipeline.scrapes import Scrapes
from otel_gpu.pipeline.server import Server, listen
from otel_gpu.pipeline.users import Guard
from otel_gpu.pipeline.web import Web


class PrometheusReader(MetricReader):
    """Serves `/metrics` and the agent's own pages over HTTP, from construction to `shutdown`.

    Raises ConfigError when it cannot listen there. `/metrics` answers 503 until a MeterProvider has
    registered the reader. Where a predecessor has the same address, it shares that one's socket,
    and serves from when it hands over.
    """

    def __init__(self, options: Prometheus, context: Context) -> None:
        super().__init__()
        self._context = context
        self._exposition = Exposition(created=options.created)
        self._collecting = Lock()
        self._data: MetricsData | None = None
        self.address = options.address
        web = Web(options.web_config) if options.web_config else None
        before = self._sharing(context.predecessor)
        listener = before.server.shared() if before else self._listen(context.predecessor)
        self._scrapes = Scrapes(self.data, self._render, options.max_scrapes, context.snapshot)
        self._guard: Guard | None = None
        self.server: Server = self._served(listener, web)
        if not before:
            self.server.begin()

    def _sharing(self, other: MetricReader | None) -> PrometheusReader | None:
        """Give the other reader, if it is one of these with the same address."""
        if isinstance(other, PrometheusReader) and other.address == self.address:
            return other
        return None

    def _listen(self, before: MetricReader | None) -> socket.socket:
        port = split_address(self.address)[1]
        if isinstance(before, PrometheusReader) and port and before.port == port:
            raise ConfigError(
                f"pipeline.prometheus.address: {before.address} cannot become {self.address} "
                "while the agent runs: take another port, or restart it"
            )
        return listen(self.address, "pipeline.prometheus.address")

    def hand_over(self, successor: MetricReader) -> None:
        """Let the successor answer those who come from now on."""
        if heir := self._sharing(successor):
            heir.server.begin()

    def ailment(self) -> str | None:
        """Say that the server has ended; while it moves, it is who answers that."""
        return None if self.server.is_alive else "the thread that serves has ended"

    def _served(self, listener: socket.socket, web: Web | None) -> Server:
        if web is None:
            return Server(App(self._scrapes, self._context), listener)
        app = App(self._scrapes, self._context, web.headers)
        self._guard = Guard(app, web.users)
        return Server(self._guard, listener, context=web.context, admits=web.admits)

    @property
    def port(self) -> int:
        """The port that it listens on, also where the configuration left the choice open."""
        return self.server.port

    def data(self) -> MetricsData | None:
        """Collect now; None while no MeterProvider knows this reader."""
        if self._collect is None:
            return None
        with self._collecting:
            self._data = MetricsData(resource_metrics=[])  # for a collection that finds nothing
            self.collect()
            return self._data

    def shutdown(self, timeout_millis: float = 30_000, **_: Any) -> None:
        """Answer what is under way, close, and return within the time."""
        self.server.stop(timeout_millis / 1e3)
        self._scrapes.close()
        if self._guard:
            self._guard.close()

    def _receive_metrics(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **_: Any
    ) -> None:
        del timeout_millis  # nothing here waits
        self._data = metrics_data

    def _render(self, data: MetricsData, form: Format, only: frozenset[str]) -> bytes:
        return self._exposition.render(data, form, self._context.resource(), only)


def build(options: Prometheus, context: Context) -> PrometheusReader:
    """Make the reader for `pipeline: - prometheus:`. Raises ConfigError."""
    if options.names != ("otel",) or options.counters_file:
        raise ConfigError("pipeline.prometheus.names: only otel is written by this version")
    return PrometheusReader(options, context)
