"""A collection as OTLP JSON, on one line: what the `file` part and `once --format otlp` write."""

from __future__ import annotations

import json

from opentelemetry.sdk.metrics.export import MetricsData


def line(data: MetricsData) -> str:
    """Write a collection as an ExportMetricsServiceRequest, in ASCII and without a line's end.

    Source: OTLP specification, "JSON Protobuf Encoding": lowerCamelCase keys, enums as integers,
    64-bit integers as text. Its exception for the ids of traces does not arise: our points have no
    exemplars.

    A Resource stands after its points, so that the first time of the line is among its first
    thousand bytes. By these the Collector's file receivers tell a new file from one put aside.
    """
    from google.protobuf.json_format import MessageToDict  # noqa: PLC0415 - heavy, and rarely used
    from opentelemetry.exporter.otlp.proto.common.metrics_encoder import (  # noqa: PLC0415 - as above
        encode_metrics,
    )

    request = MessageToDict(encode_metrics(data), use_integers_for_enums=True)
    found = request.get("resourceMetrics", [])
    for each in found:
        each["resource"] = each.pop("resource")
    return json.dumps({"resourceMetrics": found}, separators=(",", ":"))
