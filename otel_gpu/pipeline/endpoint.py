"""How an OTLP endpoint is reached: what the official exporters of every signal are given."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from otel_gpu.config import Otlp
from otel_gpu.model import ConfigError
from otel_gpu.pipeline.headers import read_headers

if TYPE_CHECKING:
    from otel_gpu.pipeline.session import Session

METRICS_PATH = "/v1/metrics"
LOGS_PATH = "/v1/logs"
SIGNALS = (METRICS_PATH, LOGS_PATH, "/v1/traces")


def signal_url(endpoint: str, path: str) -> str:
    """Give the URL to post to: the endpoint is the base of all signals, or names one of them."""
    parts = urlsplit(endpoint)
    base = parts.path.rstrip("/")
    for signal in SIGNALS:
        base = base.removesuffix(signal)
    return parts._replace(path=base + path).geturl()


def http(options: Otlp, path: str, session: Session) -> dict[str, Any]:
    """Give what an exporter over HTTP is made with. ConfigError: a file cannot be read."""
    from opentelemetry.exporter.otlp.proto.http import (  # noqa: PLC0415 - 17 MB where nobody pushes
        Compression,
    )

    tls = options.tls
    for key, file in (("ca", tls.ca_file), ("cert", tls.cert_file), ("key", tls.key_file)):
        _content(f"{key}_file", file)  # requests would find out at the first push
    return {
        "endpoint": signal_url(options.endpoint, path),
        "certificate_file": _text(tls.ca_file),
        "client_certificate_file": _text(tls.cert_file),
        "client_key_file": _text(tls.key_file),
        "compression": Compression(options.compression),
        "session": session,
        **_common(options),
    }


def grpc(options: Otlp) -> dict[str, Any]:
    """Give what an exporter over gRPC is made with. ConfigError: a file cannot be read."""
    from grpc import (  # type: ignore[import-untyped]  # noqa: PLC0415, TID251 - spoken here only; no types
        Compression,
        ssl_channel_credentials,
    )

    tls = options.tls
    plain = urlsplit(options.endpoint).scheme == "http"
    credentials = ssl_channel_credentials(
        root_certificates=_content("ca_file", tls.ca_file),
        certificate_chain=_content("cert_file", tls.cert_file),
        private_key=_content("key_file", tls.key_file),
    )
    gzip = options.compression == "gzip"
    return {
        "endpoint": options.endpoint,
        "insecure": plain,
        "credentials": None if plain else credentials,
        "compression": Compression.Gzip if gzip else Compression.NoCompression,
        **_common(options),
    }


def _common(options: Otlp) -> dict[str, Any]:
    headers = {**options.headers, **read_headers(options.headers_file)}
    return {
        "headers": {name.lower(): value for name, value in headers.items()},
        "timeout": options.timeout,
    }


def _text(path: Path | None) -> str | None:
    return str(path) if path else None


def _content(key: str, path: Path | None) -> bytes | None:
    try:
        return path.read_bytes() if path else None
    except OSError as error:
        raise ConfigError(f"pipeline.otlp.tls.{key}: {path}: {error.strerror}") from error
