"""OTLP push: the official exporter, over HTTP or gRPC, behind a reader that keeps its cadence."""

from __future__ import annotations

import logging

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
from otel_gpu.pipeline import Context, endpoint
from otel_gpu.pipeline.cadence import PushReader
from otel_gpu.pipeline.explained import ExplainedExporter

log = logging.getLogger(__name__)

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
    preferred = TEMPORALITY[options.temporality]
    if options.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import (  # noqa: PLC0415 - 17 MB where nobody pushes
            OTLPMetricExporter as Grpc,
        )

        return ExplainedExporter(Grpc(**endpoint.grpc(options), preferred_temporality=preferred))
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import (  # noqa: PLC0415 - as above
        OTLPMetricExporter as Http,
    )

    from otel_gpu.pipeline.session import Session  # noqa: PLC0415 - as above

    session = Session()
    parts = endpoint.http(options, endpoint.METRICS_PATH, session)
    return ExplainedExporter(Http(**parts, preferred_temporality=preferred), session.failure)
