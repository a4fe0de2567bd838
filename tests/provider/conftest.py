"""A provider with one reader, for every test of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.metrics.export import (
    InMemoryMetricReader,
)

from otel_gpu.provider import MeterProvider
from tests.provider.words import (
    resources,
)


@pytest.fixture
def reader() -> InMemoryMetricReader:
    return InMemoryMetricReader()


@pytest.fixture
def provider(reader: InMemoryMetricReader) -> Iterator[MeterProvider]:
    provider = MeterProvider([reader], resources, shutdown_on_exit=False)
    yield provider
    provider.shutdown()
