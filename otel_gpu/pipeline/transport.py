"""How a batch travels to an OTLP target: the official exporters' addressing, our bytes.

Each transport sends once and says what came of it; whoever delivers decides what is tried again.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from opentelemetry.sdk.metrics.export import MetricsData

from otel_gpu.config import Otlp
from otel_gpu.model import ConfigError
from otel_gpu.pipeline import endpoint
from otel_gpu.pipeline.credentials import Credentials
from otel_gpu.pipeline.outcome import Later, Outcome, Refused, of_body, of_grpc
from otel_gpu.pipeline.overhearing import overhearing
from otel_gpu.pipeline.watched import Watched

NOTHING = MetricsData(resource_metrics=())

EXPORT = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
"""The method (OTLP specification, "OTLP/gRPC")."""


class Transport(Protocol):
    """Sends to one target."""

    def send(self, body: bytes) -> Outcome:
        """Send gzip of an ExportMetricsServiceRequest, once. Does not raise."""

    def close(self) -> None:
        """Break off what is under way, where that can be; send no more."""


class Http:
    """OTLP over HTTP. Raises ConfigError when a file that the options name cannot be read."""

    def __init__(self, options: Otlp) -> None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import (  # noqa: PLC0415 - 17 MB where nobody pushes
            OTLPMetricExporter,
        )

        from otel_gpu.pipeline.session import Courier  # noqa: PLC0415 - as above

        self._courier = Courier()
        self._compressed = options.compression == "gzip"
        parts = endpoint.http(options, endpoint.METRICS_PATH, self._courier)
        self._exporter = OTLPMetricExporter(**parts)

    def send(self, body: bytes) -> Outcome:
        """Send once."""
        self._courier.outcome = None
        self._courier.body = body if self._compressed else gzip.decompress(body)
        with overhearing() as said:
            self._exporter.export(NOTHING)
        # An exporter that is shut down sends nothing, and says so.
        text = self._courier.given.credentials.hidden(" ".join(said))
        return self._courier.outcome or Refused("_OTHER", text or "nothing was sent")

    def close(self) -> None:
        """Close the connection."""
        self._exporter.shutdown()


class Grpc:
    """OTLP over gRPC. Raises ConfigError when a file that the options name cannot be read."""

    def __init__(self, options: Otlp) -> None:
        self._options = options
        self._exporter, self._export = self._connect()
        self._lost = False

    def send(self, body: bytes) -> Outcome:
        """Send once; on a new channel where the last one lost its server: some never find it."""
        from grpc import RpcError  # type: ignore[import-untyped]  # noqa: PLC0415, TID251 - spoken here; no types

        try:
            if self._lost:
                self._reconnect()
            answer = self._export(
                gzip.decompress(body),
                metadata=self._exporter._headers,  # noqa: SLF001 - the exporter has no public sender of bytes
                timeout=self._options.timeout,
            )
        except RpcError as error:
            code = error.code().name
            self._lost = code == "UNAVAILABLE"
            details = self._credentials.hidden(error.details() or "")
            return of_grpc(code, details, error.trailing_metadata() or ())
        except ConfigError as error:  # a certificate that is just being replaced
            return Later(type(error).__name__, str(error))
        except ValueError as error:  # the channel is closed: we are shutting down
            return Refused("_OTHER", self._credentials.hidden(str(error)))
        return of_body(answer)

    def close(self) -> None:
        """Close the channel."""
        self._exporter.shutdown(timeout_millis=0)

    def _reconnect(self) -> None:
        before = self._exporter
        self._exporter, self._export = self._connect()
        self._lost = False
        before.shutdown()

    def _connect(self) -> tuple[Any, Callable[..., bytes]]:
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import (  # noqa: PLC0415 - 12 MB where nobody uses gRPC
            OTLPMetricExporter,
        )

        parts = endpoint.grpc(self._options)
        self._credentials = Credentials(self._options.endpoint, parts["headers"])
        exporter: Any = OTLPMetricExporter(**parts)
        return exporter, exporter._channel.unary_unary(EXPORT)  # noqa: SLF001 - bytes in, bytes out, on its channel


def connect(options: Otlp) -> Transport:
    """Make the transport that the options ask for. Raises ConfigError."""
    return Grpc(options) if options.protocol == "grpc" else Http(options)


class Renewed:
    """A transport that is made anew when a file that it was made from has changed."""

    def __init__(self, make: Callable[[], Transport], files: Sequence[Path]) -> None:
        self._watched = Watched(make, lambda _: files)
        self._transport = self._watched.current()

    def send(self, body: bytes) -> Outcome:
        """Send, with the files as they are now."""
        before, self._transport = self._transport, self._watched.current()
        if self._transport is not before:
            before.close()
        return self._transport.send(body)

    def close(self) -> None:
        """Pass on."""
        self._transport.close()


def files(options: Otlp) -> Sequence[Path]:
    """Give the files that a transport is made from."""
    tls = options.tls
    named = (options.headers_file, tls.ca_file, tls.cert_file, tls.key_file)
    return [path for path in named if path]
