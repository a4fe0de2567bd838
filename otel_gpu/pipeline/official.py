"""Pieces of OTLP, cut out of what the official encoder makes: it decides how everything is written.

Each function encodes a request that has little in it but the thing, and takes the thing's bytes
out of the message. They raise what the encoder raises: EncodingException, which it does not export,
for values and attributes; UnicodeEncodeError and TypeError for names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from google.protobuf.message import Message
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.sdk.metrics.export import (
    Gauge,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

_RESOURCE = Resource({})
_SCOPE = InstrumentationScope("")


class Frame(NamedTuple):
    """What stands before and behind the contents of a message."""

    head: bytes
    tail: bytes


def resource(thing: Resource) -> Frame:
    """Encode what a ResourceMetrics says besides its contents."""
    return _frame(_resource_metrics(thing, ()), "resource", "schema_url")


def scope(thing: InstrumentationScope) -> Frame:
    """Encode what a ScopeMetrics says besides its contents."""
    found = _resource_metrics(_RESOURCE, [ScopeMetrics(thing, [], "")])
    return _frame(found.scope_metrics[0], "scope", "schema_url")


@lru_cache(maxsize=1024)  # a catalog's worth
def title(name: str, description: str | None, unit: str | None) -> bytes:
    """Encode what a metric says besides its points."""
    return metric(Metric(name, description, unit, Gauge([])))


def metric(thing: Metric) -> bytes:
    """Encode a whole metric."""
    return _metric(thing).SerializeToString()


def attributes(of_point: Mapping[str, Any]) -> bytes:
    """Encode a point's attributes. One that has no form in OTLP is left out, and logged."""
    point = NumberDataPoint(of_point, 0, 0, 0.0, [])
    encoded = _metric(Metric("", "", "", Gauge([point]))).gauge.data_points[0]
    encoded.ClearField("as_double")  # which is written even where it is 0
    return encoded.SerializeToString()


def _metric(thing: Metric) -> metrics_pb2.Metric:
    found = _resource_metrics(_RESOURCE, [ScopeMetrics(_SCOPE, [thing], "")])
    return found.scope_metrics[0].metrics[0]


def _resource_metrics(
    thing: Resource, scopes: Sequence[ScopeMetrics]
) -> metrics_pb2.ResourceMetrics:
    return encode_metrics(MetricsData([ResourceMetrics(thing, scopes, "")])).resource_metrics[0]


def _frame(message: Message, first: str, last: str) -> Frame:
    """Cut a message, of which these are the first field and the last."""
    head = type(message)()
    head.CopyFrom(message)
    head.ClearField(last)
    message.ClearField(first)
    return Frame(_alone(head), _alone(message))


def _alone(message: Message) -> bytes:
    """Serialise without the contents between."""
    for field in ("scope_metrics", "metrics"):
        if field in message.DESCRIPTOR.fields_by_name:
            message.ClearField(field)
    return message.SerializeToString()
