"""Recorded machines, and what the whole agent makes of them: one page and one OTLP request each.

`pytest tests/test_golden.py --accept` rewrites the golden files; the difference is the review.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricsData

from otel_gpu.backends.direct import Direct
from otel_gpu.backends.recorded import RecordedBackend
from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.census import select
from otel_gpu.instruments import Instruments
from otel_gpu.model import NODE, Profile, Snapshot
from otel_gpu.pipeline.exposition import Exposition, Format
from otel_gpu.provider import MeterProvider
from otel_gpu.resources import Resources
from otel_gpu.sampler import Clock, Plan, Sampler, tiers
from otel_gpu.single import SUPPLIES
from otel_gpu.sweep import intervals

CAPTURES = sorted((Path(__file__).parent / "captures").glob("*.json"))
GOLDEN = Path(__file__).parent / "golden"
BEGIN_NS = 1_796_076_000_000_000_000
SECONDS = 17  # so that the power window is full
NODE_ATTRIBUTES = {"service.name": "otel-gpu", "host.name": "node-1", "host.id": "0123456789abcdef"}


class Steps:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def unix_ns(self) -> int:
        return BEGIN_NS + int(self.seconds * 1e9)


def replayed(capture: Path) -> tuple[Sampler, Steps]:
    """Sweep a recording as the agent would, second by second, with the full profile."""
    steps = Steps()
    driver = Direct(RecordedBackend(str(capture)), monotonic=steps.monotonic)
    metrics = select(CATALOG, Profile.FULL, ["*"])
    every = intervals(metrics, tiers(1.0, 5.0, 60.0), lambda _: None)
    clock = Clock(monotonic=steps.monotonic, unix_ns=steps.unix_ns)
    sampler = Sampler(driver, Plan(metrics=metrics, every=every), clock=clock)
    for second in range(SECONDS):
        steps.seconds = float(second)
        sampler.step()
    return sampler, steps


def collected(snapshot: Snapshot, steps: Steps) -> tuple[MetricsData, Resources]:
    resources = Resources(NODE_ATTRIBUTES, lambda: snapshot)
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], resources, shutdown_on_exit=False)
    instruments = Instruments(
        select(CATALOG, Profile.FULL, ["*"]),
        lambda: snapshot,
        every={},
        supplies=SUPPLIES,
        clock=steps.monotonic,
    )
    instruments.register(provider.get_meter("otel-gpu", "golden"))
    data = reader.get_metrics_data()
    provider.shutdown()
    assert data is not None
    return data, resources


def without_time(request: object) -> object:
    """Leave out when a request was made, which is not what a recording says."""
    if isinstance(request, dict):
        return {k: without_time(v) for k, v in request.items() if k != "timeUnixNano"}
    if isinstance(request, list):
        return [without_time(one) for one in request]
    return request


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_a_recorded_machine_gives_the_same_page_and_the_same_request(
    capture: Path, *, accept: bool
) -> None:
    sampler, steps = replayed(capture)
    data, resources = collected(sampler.snapshot, steps)
    request = without_time(MessageToDict(encode_metrics(data)))
    made = {
        f"{capture.stem}.prom": Exposition().render(data, Format.TEXT, resources(NODE)).decode(),
        f"{capture.stem}.otlp.json": json.dumps(request, indent=1, sort_keys=True) + "\n",
    }
    for name, text in made.items():
        path = GOLDEN / name
        if accept:
            path.write_text(text, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == text, "look at the difference, then --accept"


def test_there_are_recordings() -> None:
    assert CAPTURES
