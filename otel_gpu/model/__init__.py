"""The words of otel-gpu: what a metric is, what is asked, what was answered, what is published.

Values only: nothing here reads a clock, a file or a driver; worker and agent share them.
"""

from __future__ import annotations

from otel_gpu.model.driver import (
    Answer,
    Backend,
    Code,
    Device,
    Event,
    EventKind,
    Query,
    Refused,
    System,
)
from otel_gpu.model.errors import (
    BackendError,
    ConfigError,
    OtelGpuError,
)
from otel_gpu.model.metrics import (
    REASONS,
    Attributes,
    AttributeValue,
    Gap,
    Kind,
    Metric,
    Missing,
    Outcome,
    Point,
    Profile,
    Read,
    Reading,
    Reason,
    Tier,
)
from otel_gpu.model.published import (
    NODE,
    Account,
    Owner,
    ResourceKey,
    Series,
    Snapshot,
)

__all__ = [
    "NODE",
    "REASONS",
    "Account",
    "Answer",
    "AttributeValue",
    "Attributes",
    "Backend",
    "BackendError",
    "Code",
    "ConfigError",
    "Device",
    "Event",
    "EventKind",
    "Gap",
    "Kind",
    "Metric",
    "Missing",
    "OtelGpuError",
    "Outcome",
    "Owner",
    "Point",
    "Profile",
    "Query",
    "Read",
    "Reading",
    "Reason",
    "Refused",
    "ResourceKey",
    "Series",
    "Snapshot",
    "System",
    "Tier",
]
