"""How an OTLP endpoint is reached: what the official exporters of every signal are given."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from otel_gpu.config import Otlp, Tls
from otel_gpu.model import ConfigError
from otel_gpu.pipeline.credentials import Credentials
from otel_gpu.pipeline.headers import read_headers

if TYPE_CHECKING:
    from otel_gpu.pipeline.session import Session

METRICS_PATH = "/v1/metrics"
LOGS_PATH = "/v1/logs"
SIGNALS = (METRICS_PATH, LOGS_PATH, "/v1/traces")


class Headers(dict[str, str]):
    """All the headers there are, also where there is none: true, so that no exporter asks further.

    The official ones look into the environment for headers that they were not given.
    """

    def __bool__(self) -> bool:
        """Say that something was given."""
        return True


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

    from otel_gpu.pipeline.session import Given  # noqa: PLC0415 - as above

    tls = options.tls
    _pem(tls)  # requests would find out at the first push
    common = _common(options)
    session.given = Given(
        common["headers"],
        _text(tls.ca_file),
        (str(tls.cert_file), str(tls.key_file)) if tls.cert_file else None,
        Credentials(options.endpoint, common["headers"]),
    )
    return {
        "endpoint": signal_url(options.endpoint, path),
        "certificate_file": _text(tls.ca_file),
        "client_certificate_file": _text(tls.cert_file),
        "client_key_file": _text(tls.key_file),
        "compression": Compression(options.compression),
        "session": session,
        **common,
    }


def grpc(options: Otlp) -> dict[str, Any]:
    """Give what an exporter over gRPC is made with. ConfigError: a file cannot be read."""
    from grpc import (  # type: ignore[import-untyped]  # noqa: PLC0415, TID251 - spoken here only; no types
        Compression,
        ssl_channel_credentials,
    )

    plain = urlsplit(options.endpoint).scheme == "http"
    authorities, chain, key = _pem(options.tls)
    credentials = ssl_channel_credentials(authorities, key, chain)
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
        "headers": Headers({name.lower(): value for name, value in headers.items()}),
        "timeout": options.timeout,
    }


def _text(path: Path | None) -> str | None:
    return str(path) if path else None


def _pem(tls: Tls) -> tuple[bytes | None, bytes | None, bytes | None]:
    """Read ca_file, cert_file and key_file. Raises ConfigError: one is not what it should be.

    gRPC ends the whole process over an empty certificate or key, as one is for a moment that is
    being replaced. So OpenSSL is asked first, and they are read again, lest they changed meanwhile.
    """
    content = _content(tls)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if tls.ca_file:
        with _refusing("ca_file", tls.ca_file):
            context.load_verify_locations(tls.ca_file)
    if tls.cert_file:
        with _refusing("cert_file, key_file", f"{tls.cert_file}, {tls.key_file}"):
            # With a pass phrase: or OpenSSL would ask for it on the terminal, for ever.
            context.load_cert_chain(tls.cert_file, tls.key_file, password=lambda: "")
    if _content(tls) != content:
        raise ConfigError("pipeline.otlp.tls: the files change while they are read")
    return content


def _content(tls: Tls) -> tuple[bytes | None, bytes | None, bytes | None]:
    return (
        _bytes("ca_file", tls.ca_file),
        _bytes("cert_file", tls.cert_file),
        _bytes("key_file", tls.key_file),
    )


def _bytes(key: str, path: Path | None) -> bytes | None:
    with _refusing(key, path):
        return path.read_bytes() if path else None


@contextmanager
def _refusing(key: str, what: object) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # ssl's own is an OSError, too
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise ConfigError(f"pipeline.otlp.tls.{key}: {what}: {reason}") from error
