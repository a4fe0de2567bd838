"""What the tests of the pipeline begin with, and is ended after each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from otel_gpu.pipeline.push import PushReader
from tests.pipeline.box import Box
from tests.pipeline.exporting import NEVER_S, Exporter, Push
from tests.receiver import GrpcReceiver, HttpReceiver, Receiver


@pytest.fixture
def push() -> Iterator[Push]:
    """Make readers that are registered, and shut down after the test."""
    boxes: list[Box] = []

    def make(exporter: Exporter, interval_s: float = NEVER_S, **options: Any) -> PushReader:
        reader = PushReader(exporter, interval_s=interval_s, **options)
        boxes.append(Box([reader]))
        return reader

    yield make
    for box in boxes:
        box.provider.shutdown(timeout_millis=100)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Receive OTLP, over HTTP and over gRPC."""
    receiver = Receiver()
    http, rpc = HttpReceiver(receiver), GrpcReceiver(receiver)
    yield receiver
    http.close()
    rpc.close()
