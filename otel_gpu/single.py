"""One sweep, without an agent around it: what `once`, `metrics --gpu` and `record` are made of."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricsData

from otel_gpu import __version__, pulse
from otel_gpu.attribution import allocation
from otel_gpu.attribution.choosing import chosen
from otel_gpu.backends import open_backend
from otel_gpu.backends.recorded import record, write
from otel_gpu.catalog import CATALOG
from otel_gpu.config import Settings
from otel_gpu.document import document
from otel_gpu.instruments import Instruments
from otel_gpu.ledger import Page
from otel_gpu.model import NODE, Device, Query, Reason, Snapshot
from otel_gpu.pipeline.exposition import Exposition, Format
from otel_gpu.pipeline.otlp_json import line
from otel_gpu.planning import bounds, plan, shape
from otel_gpu.provider import MeterProvider
from otel_gpu.resources import SCHEMA_URL, Resources, node
from otel_gpu.sampler import Sampler
from otel_gpu.sweep import applicable, questions
from otel_gpu.worker.supervisor import Supervisor

APART_S = 0.2  # twice what a pair of GPM samples needs

SUPPLIES = {
    "nvidia.gpu.allocation": allocation,
    "otel_gpu.nvml.up": pulse.nvml_up,
    "otel_gpu.device.up": pulse.device_up,
    "otel_gpu.reading.missing": pulse.reading_missing,
}


def sweep(settings: Settings) -> Snapshot:
    """Read every GPU, through a worker of its own, which then goes away.

    What is a mean between two reads (GPM) has none the first time; then everything is read again.
    """
    driver = Supervisor(settings.backend)
    planned = plan(settings)
    planned = replace(planned, every=dict.fromkeys(planned.every, APART_S))
    here = node(os.environ, settings.resource.attributes, __version__)
    sources = chosen(settings, os.environ, here)
    sampler = Sampler(driver, planned, sources=sources)
    try:
        snapshot = sampler.step()
        if any(gap.missing.reason is Reason.NOT_READY for gap in snapshot.gaps):
            time.sleep(APART_S)
            snapshot = sampler.step()
        return snapshot
    finally:
        for source in sources:
            source.close()
        driver.close()


def collected(
    settings: Settings, snapshot: Snapshot, environ: Mapping[str, str]
) -> tuple[MetricsData, Resources]:
    """Give a snapshot as the pipeline would get it, and its Resources."""
    planned = plan(settings)
    described = node(environ, settings.resource.attributes, __version__)
    resources = Resources(described, lambda: snapshot)
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], resources, shutdown_on_exit=False)
    instruments = Instruments(
        planned.metrics,
        lambda: snapshot,
        every=planned.every,
        supplies=SUPPLIES,
        shape=shape(settings),
        bounds=bounds(settings),
    )
    instruments.register(provider.get_meter("otel-gpu", __version__, SCHEMA_URL))
    data = reader.get_metrics_data() or MetricsData(resource_metrics=())
    provider.shutdown()
    return data, resources


def as_json(snapshot: Snapshot) -> str:
    """Write a snapshot as one JSON document."""
    return json.dumps(document(snapshot), indent=2, ensure_ascii=False)


def as_prometheus(settings: Settings, snapshot: Snapshot) -> str:
    """Write a snapshot as the page that Prometheus would scrape."""
    data, resources = collected(settings, snapshot, os.environ)
    return Exposition().render(data, Format.TEXT, resources(NODE)).decode()


def as_otlp(settings: Settings, snapshot: Snapshot) -> str:
    """Write a snapshot as the `file` part does: a line of OTLP JSON."""
    data, _ = collected(settings, snapshot, os.environ)
    return line(data)


def capture(settings: Settings, path: Path, label: str, sweeps: int, pause_s: float) -> int:
    """Record the answers to every question of the catalog; give how many GPUs were recorded.

    Raises BackendError when there is no driver, OSError when the file cannot be written.
    """
    backend = open_backend(settings.backend)
    try:
        opened = backend.open()
        asked = {device.uuid: every_question(device) for device in opened.devices}
        write(path, record(backend, opened, asked, label=label, sweeps=sweeps, pause_s=pause_s))
        return len(opened.devices)
    finally:
        backend.close()


def every_question(device: Device) -> tuple[Query, ...]:
    """Give all that the catalog can ask a device, whatever the profile."""
    return questions(applicable(CATALOG, device), replace(device), Page(), 0.0)
