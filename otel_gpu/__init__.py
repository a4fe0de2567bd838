"""otel-gpu: NVIDIA GPUs, read through NVML, as OpenTelemetry metrics.

The public names are here, each loaded when first used, so that the worker process does not pay for
what only the agent needs. Other modules can be imported, and may change.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from otel_gpu.agent import Agent
    from otel_gpu.backends import open_backend
    from otel_gpu.catalog import CATALOG
    from otel_gpu.config import Settings
    from otel_gpu.instruments import Instruments
    from otel_gpu.model import (
        BackendError,
        ConfigError,
        Gap,
        Kind,
        Metric,
        OtelGpuError,
        Point,
        Reading,
        Snapshot,
    )
    from otel_gpu.provider import MeterProvider

__version__ = "0.1.0"

__all__ = [
    "CATALOG",
    "Agent",
    "BackendError",
    "ConfigError",
    "Gap",
    "Instruments",
    "Kind",
    "MeterProvider",
    "Metric",
    "OtelGpuError",
    "Point",
    "Reading",
    "Settings",
    "Snapshot",
    "open_backend",
]

_HOMES = {
    "CATALOG": "otel_gpu.catalog",
    "Agent": "otel_gpu.agent",
    "Instruments": "otel_gpu.instruments",
    "MeterProvider": "otel_gpu.provider",
    "Settings": "otel_gpu.config",
    "open_backend": "otel_gpu.backends",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'otel_gpu' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "otel_gpu.model")), name)
