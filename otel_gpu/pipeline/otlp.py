"""OTLP push: the official exporter, over HTTP or gRPC, behind a reader that keeps its cadence."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.sdk.metrics import (
    Counter,
    Histogram,
    ObservableCounter,
    ObservableGauge,
    ObservableUpDownCounter,
    UpDownCounter,
)
from opentelemetry.sdk.metrics.export import AggregationTemporality, MetricExporter

from otel_gpu.config import Otlp
from otel_gpu.config.masks import masked_url
from otel_gpu.model import ConfigError
from otel_gpu.pipeline import Context
from otel_gpu.pipeline.cadence import PushReader
from otel_gpu.pipeline.explained import ExplainedExporter
from otel_gpu.pipeline.headers import read_headers

log = logging.getLogger(__name__)

METRICS_PATH = "/v1/metrics"

_CUMULATIVE: dict[type, AggregationTemporality] = dict.fromkeys(
    (
        Counter,
        Histogram,
        ObservableCounter,
        ObservableGauge,
        ObservableUpDownCounter,
        UpDownCounter,
    ),
    AggregationTemporality.CUMULATIVE,
)
_GROWTH: dict[type, AggregationTemporality] = dict.fromkeys(
    (Counter, Histogram), AggregationTemporality.DELTA
)

TEMPORALITY = {"cumulative": _CUMULATIVE, "delta": {**_CUMULATIVE, **_GROWTH}}
"""What a target prefers. Observable counters are cumulative in any case: nothing keeps their state.

Every kind of instrument is named, or the exporter would ask the environment, which configuration
has taken into account already.
"""


def build(options: Otlp, context: Context) -> PushReader:
    """Make the reader that pushes to one endpoint. Raises ConfigError."""
    if options.temporality == "delta":
        log.warning(
            "pipeline.otlp.temporality: delta is for what the agent itself records; "
            "counters that it reads are sent as totals"
        )
    return PushReader(
        exporter(options),
        interval_s=options.interval,
        node=context.node,
        target=f"otlp {masked_url(options.endpoint)}",
        record=context.record,
    )


def exporter(options: Otlp) -> MetricExporter:
    """Make the exporter, which raises what goes wrong. ConfigError: a file cannot be read."""
    headers = {**options.headers, **read_headers(options.headers_file)}
    make = _grpc if options.protocol == "grpc" else _http
    return make(
        options,
        headers={name.lower(): value for name, value in headers.items()},
        timeout=options.timeout,
        preferred_temporality=TEMPORALITY[options.temporality],
    )


def metrics_url(endpoint: str) -> str:
    """Give the URL to post to: the endpoint, which is the base of all signals or names this one."""
    parts = urlsplit(endpoint)
    base = parts.path.rstrip("/").removesuffix(METRICS_PATH)
    return parts._replace(path=base + METRICS_PATH).geturl()


def _http(options: Otlp, **common: Any) -> MetricExporter:
    from opentelemetry.exporter.otlp.proto.http import (  # noqa: PLC0415 - 17 MB where nobody pushes
        Compression,
    )
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import (  # noqa: PLC0415 - as above
        OTLPMetricExporter,
    )

    from otel_gpu.pipeline.session import Session  # noqa: PLC0415 - as above

    tls, session = options.tls, Session()
    for key, path in (("ca", tls.ca_file), ("cert", tls.cert_file), ("key", tls.key_file)):
        _content(f"{key}_file", path)  # requests would find out at the first push
    official = OTLPMetricExporter(
        metrics_url(options.endpoint),
        certificate_file=_text(tls.ca_file),
        client_certificate_file=_text(tls.cert_file),
        client_key_file=_text(tls.key_file),
        compression=Compression(options.compression),
        session=session,
        **common,
    )
    return ExplainedExporter(official, session.failure)


def _grpc(options: Otlp, **common: Any) -> MetricExporter:
    from grpc import (  # type: ignore[import-untyped]  # noqa: PLC0415, TID251 - spoken here only; no types
        Compression,
        ssl_channel_credentials,
    )
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import (  # noqa: PLC0415 - as above
        OTLPMetricExporter,
    )

    tls = options.tls
    plain = urlsplit(options.endpoint).scheme == "http"
    gzip = options.compression == "gzip"
    credentials = ssl_channel_credentials(
        root_certificates=_content("ca_file", tls.ca_file),
        certificate_chain=_content("cert_file", tls.cert_file),
        private_key=_content("key_file", tls.key_file),
    )
    official = OTLPMetricExporter(
        options.endpoint,
        insecure=plain,
        credentials=None if plain else credentials,
        compression=Compression.Gzip if gzip else Compression.NoCompression,
        **common,
    )
    return ExplainedExporter(official)


def _text(path: Path | None) -> str | None:
    return str(path) if path else None


def _content(key: str, path: Path | None) -> bytes | None:
    try:
        return path.read_bytes() if path else None
    except OSError as error:
        raise ConfigError(f"pipeline.otlp.tls.{key}: {path}: {error.strerror}") from error
