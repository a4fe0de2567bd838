"""An OTLP endpoint that takes log records: the official exporter, and why its last export failed.

OpenTelemetry's Python logs are still marked as unstable, and names moved between the versions that
we allow (1.35 to 1.45 were tried): all that differs is in this file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import signature
from pathlib import Path
from threading import Lock
from typing import Any, Protocol
from urllib.parse import urlsplit

import opentelemetry.sdk._logs as sdk_logs
from opentelemetry._logs import SeverityNumber
from opentelemetry.sdk.resources import Resource

from otel_gpu.config import Otlp
from otel_gpu.config.masks import masked_url
from otel_gpu.events.record import Record
from otel_gpu.model import ConfigError
from otel_gpu.pipeline.cadence import ExportError
from otel_gpu.pipeline.explained import explained
from otel_gpu.pipeline.headers import read_headers

LOGS_PATH = "/v1/logs"
SIGNALS = ("/v1/logs", "/v1/metrics", "/v1/traces")
LOGGERS = (
    "opentelemetry.exporter.otlp.proto.http._log_exporter",
    "opentelemetry.exporter.otlp.proto.grpc.exporter",
)

_older_record: Any = getattr(sdk_logs, "LogRecord", None)  # which is gone in 1.39

_said: ContextVar[list[str] | None] = ContextVar("said", default=None)


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
        for name in LOGGERS:
            filters = logging.getLogger(name).filters
            if _overhear not in filters:
                filters.insert(0, _overhear)  # before its own, which drops a reason said before

    def send(self, batch: Sequence[Any]) -> ExportError | None:
        """Send a batch, trying again as the exporter sees fit; give why that failed."""
        with _overhearing() as said:
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


def logs_url(endpoint: str) -> str:
    """Give the URL to post to: the endpoint is the base of all signals, or names one of them."""
    parts = urlsplit(endpoint)
    base = parts.path.rstrip("/")
    for signal in SIGNALS:
        base = base.removesuffix(signal)
    return parts._replace(path=base + LOGS_PATH).geturl()


def _common(options: Otlp) -> dict[str, Any]:
    headers = {**options.headers, **read_headers(options.headers_file)}
    return {
        "headers": {name.lower(): value for name, value in headers.items()},
        "timeout": options.timeout,
    }


def _http(options: Otlp) -> tuple[LogExporter, Failure]:
    from opentelemetry.exporter.otlp.proto.http import (  # noqa: PLC0415 - 17 MB where nobody pushes
        Compression,
    )
    from opentelemetry.exporter.otlp.proto.http._log_exporter import (  # noqa: PLC0415 - as above
        OTLPLogExporter,
    )

    from otel_gpu.pipeline.session import Session  # noqa: PLC0415 - as above

    tls, session = options.tls, Session()
    return OTLPLogExporter(
        logs_url(options.endpoint),
        certificate_file=_text(tls.ca_file),
        client_certificate_file=_text(tls.cert_file),
        client_key_file=_text(tls.key_file),
        compression=Compression(options.compression),
        session=session,
        **_common(options),
    ), session.failure


def _grpc(options: Otlp) -> tuple[LogExporter, Failure]:
    from grpc import (  # type: ignore[import-untyped]  # noqa: PLC0415, TID251 - spoken here only; no types
        Compression,
        ssl_channel_credentials,
    )
    from opentelemetry.exporter.otlp.proto.grpc._log_exporter import (  # noqa: PLC0415 - as above
        OTLPLogExporter,
    )

    tls = options.tls
    plain = urlsplit(options.endpoint).scheme == "http"
    gzip = options.compression == "gzip"
    credentials = ssl_channel_credentials(
        root_certificates=_content("ca_file", tls.ca_file),
        certificate_chain=_content("cert_file", tls.cert_file),
        private_key=_content("key_file", tls.key_file),
    )
    return OTLPLogExporter(
        options.endpoint,
        insecure=plain,
        credentials=None if plain else credentials,
        compression=Compression.Gzip if gzip else Compression.NoCompression,
        **_common(options),
    ), lambda: None


def _text(path: Path | None) -> str | None:
    return str(path) if path else None


def _content(key: str, path: Path | None) -> bytes | None:
    try:
        return path.read_bytes() if path else None
    except OSError as error:
        raise ConfigError(f"pipeline.otlp.tls.{key}: {path}: {error.strerror}") from error


@contextmanager
def _overhearing() -> Iterator[list[str]]:
    said: list[str] = []
    token = _said.set(said)
    try:
        yield said
    finally:
        _said.reset(token)


def _overhear(record: logging.LogRecord) -> bool:
    """Take a record out of the log, where it was made during an export of ours."""
    said = _said.get()
    if said is None:
        return True
    said.append(record.getMessage())
    return False
