"""An OTLP endpoint that takes log records: the official exporter, and why its last export failed.

OpenTelemetry's Python logs are still marked as unstable, and names moved between the versions that
we allow (1.35 to 1.45 were tried): all that differs is in this file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from threading import Lock
from typing import Any, Protocol

import opentelemetry.sdk._logs as sdk_logs
from opentelemetry._logs import SeverityNumber
from opentelemetry.sdk.resources import Resource

from otel_gpu.config import Otlp
from otel_gpu.config.masks import masked_url
from otel_gpu.events.explained import explained
from otel_gpu.events.record import Record
from otel_gpu.pipeline import endpoint
from otel_gpu.pipeline.failure import ExportError
from otel_gpu.pipeline.overhearing import overhearing

_older_record: Any = getattr(sdk_logs, "LogRecord", None)  # which is gone in 1.39


class LogExporter(Protocol):
    """What the official exporters have in common, whatever their base class is called."""

    def export(self, batch: Sequence[Any]) -> Any:
        """Send; give a result named SUCCESS or FAILURE, or raise."""

    def shutdown(self) -> None:
        """Break off what is under way, and send no more."""


Failure = Callable[[], ExportError | None]
"""Gives, once, how the last request failed, where the transport knows; a redirect, too."""


def emit(logger: Any, record: Record, resource: Resource) -> None:
    """Hand a record to an SDK's Logger: in parts, or up to 1.37 as a class of the SDK's own."""
    parts: dict[str, Any] = {
        "timestamp": record.time_ns,
        "severity_number": SeverityNumber(int(record.severity)),
        "severity_text": record.severity.name,
        "body": record.body,
        "attributes": dict(record.attributes),
        "event_name": record.event_name,
    }
    if "event_name" in signature(logger.emit).parameters:
        logger.emit(**parts)
    else:
        logger.emit(_older_record(resource=resource, **parts))


class Endpoint:
    """One `otlp` part of the pipeline, as a target for log records. Raises ConfigError."""

    def __init__(self, options: Otlp) -> None:
        self.name = f"otlp {masked_url(options.endpoint)}"
        make = _grpc if options.protocol == "grpc" else _http
        self._exporter, self._transport = make(options)
        self._closing = Lock()
        self._closed = False

    def send(self, batch: Sequence[Any]) -> ExportError | None:
        """Send a batch, trying again as the exporter sees fit; give why that failed."""
        with overhearing() as said:
            try:
                result = self._exporter.export(batch)
            except Exception as error:  # noqa: BLE001 - older exporters raise what they do not expect
                return self._transport() or ExportError(type(error).__name__, str(error))
        failure = self._transport()
        if failure is None and result.name != "SUCCESS":
            failure = explained(said)
        return failure

    def close(self) -> None:
        """Break off what is under way, where the exporter can. A second time does nothing."""
        with self._closing:
            first, self._closed = not self._closed, True
        if first:
            self._exporter.shutdown()


def _http(options: Otlp) -> tuple[LogExporter, Failure]:
    from opentelemetry.exporter.otlp.proto.http._log_exporter import (  # noqa: PLC0415 - 17 MB where nobody pushes
        OTLPLogExporter,
    )

    from otel_gpu.pipeline.session import Session  # noqa: PLC0415 - as above

    session = Session()
    parts = endpoint.http(options, endpoint.LOGS_PATH, session)
    return OTLPLogExporter(**parts), session.failure


def _grpc(options: Otlp) -> tuple[LogExporter, Failure]:
    from opentelemetry.exporter.otlp.proto.grpc._log_exporter import (  # noqa: PLC0415 - as above
        OTLPLogExporter,
    )

    return OTLPLogExporter(**endpoint.grpc(options)), lambda: None
