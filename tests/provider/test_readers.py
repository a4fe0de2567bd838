"""Readers: official ones, late ones, stuck ones; and the end of them all."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from io import StringIO
from typing import Any

import pytest
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import CallbackOptions, NoOpMeter, Observation
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter,
    InMemoryMetricReader,
    MetricReader,
    PeriodicExportingMetricReader,
)
from prometheus_client import REGISTRY, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from otel_gpu.provider import MeterProvider
from otel_gpu.provider.bounded import run_all
from tests.provider.words import (
    GPU0,
    GPU1,
    Reading,
    collect,
    observing,
    resources,
    series,
    values,
)
from tests.receiver import GrpcReceiver, HttpReceiver, Receiver, points, value
from tests.receiver import metrics as sent


def test_a_reader_that_comes_later_collects_is_flushed_and_shut_down(
    provider: MeterProvider, reader: InMemoryMetricReader
) -> None:
    counter = provider.get_meter("m").create_counter("c")
    counter.add(1)
    out = StringIO()
    late = PeriodicExportingMetricReader(ConsoleMetricExporter(out=out), math.inf)

    provider.add_metric_reader(late)
    counter.add(2)
    assert provider.force_flush()

    assert values(collect(reader), "c") == [3]
    (sent,) = json.loads(out.getvalue())["resource_metrics"]
    assert sent["scope_metrics"][0]["metrics"][0]["data"]["data_points"][0]["value"] == 2
    provider.remove_metric_reader(late)
    assert late._shutdown
    with pytest.raises(ValueError, match="is not a reader of this provider"):
        provider.remove_metric_reader(late)
    counter.add(4)
    assert values(collect(reader), "c") == [7]


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_official_periodic_reader_and_exporters_work_unchanged(protocol: str) -> None:
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as Grpc
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as Http

    receiver = Receiver()
    server = HttpReceiver(receiver) if protocol == "http" else GrpcReceiver(receiver)
    exporter: Http | Grpc = (
        Http(f"http://127.0.0.1:{receiver.http_port}/v1/metrics")
        if protocol == "http"
        else Grpc(f"http://127.0.0.1:{receiver.grpc_port}")
    )
    periodic = PeriodicExportingMetricReader(exporter, export_interval_millis=100)
    provider = MeterProvider([periodic], resources, shutdown_on_exit=False)
    readings = [Reading(1.5, series(GPU0)), Reading(2, series(GPU1))]
    provider.get_meter("m").create_observable_gauge("g", [observing(*readings)])

    *_, request = receiver.wait(2)
    provider.shutdown()
    server.close()

    assert {
        resource["hw.id"]: [value(point) for point in points(metric)]
        for resource, metric in sent(request)
    } == {"GPU-0": [1.5], "GPU-1": [2]}


def test_a_process_that_ends_flushes_its_readers() -> None:
    script = """
from opentelemetry.metrics import Observation
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from otel_gpu.provider import MeterProvider

provider = MeterProvider([PeriodicExportingMetricReader(ConsoleMetricExporter(), 3_600_000)])
provider.get_meter("m").create_observable_gauge("g", [lambda _: [Observation(7)]])
provider.get_meter("m").create_counter("c").add(1)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True
    )
    assert '"value": 7' in ended.stdout
    assert ended.stderr == ""


def test_a_reader_is_registered_once(provider: MeterProvider, reader: InMemoryMetricReader) -> None:
    with pytest.raises(ValueError, match="is a reader of this provider already"):
        provider.add_metric_reader(reader)


def test_the_official_prometheus_reader_gets_one_resource_and_right_labels() -> None:
    official = PrometheusMetricReader()
    provider = MeterProvider([official], resources, one_resource=[official], shutdown_on_exit=False)
    readings = [Reading(1.0, series(GPU0)), Reading(2.0, series(GPU1, pipe="fp64"))]
    provider.get_meter("m").create_observable_gauge("g", [observing(*readings)], unit="W")

    page = generate_latest(REGISTRY).decode()

    samples = [one for family in text_string_to_metric_families(page) for one in family.samples]
    found = {
        (one.labels["hw_id"], one.labels.get("pipe", "")): one.value
        for one in samples
        if one.name == "g_watts"
    }
    assert found == {("GPU-0", ""): 1.0, ("GPU-1", "fp64"): 2.0}
    assert [one.labels for one in samples if one.name == "target_info"] == [
        {"service_name": "test"}
    ]
    provider.shutdown()
    assert "g_watts" not in generate_latest(REGISTRY).decode()


def test_readers_collect_at_the_same_time(reader: InMemoryMetricReader) -> None:
    other = InMemoryMetricReader()
    provider = MeterProvider([reader, other], resources, shutdown_on_exit=False)
    together = threading.Barrier(2, timeout=10)

    def callback(_options: CallbackOptions) -> Iterable[Observation]:
        together.wait()  # breaks, and raises, unless both collections are in here at once
        return [Observation(1)]

    provider.get_meter("m").create_observable_gauge("g", [callback])
    thread = threading.Thread(target=other.collect)
    thread.start()
    reader.collect()
    thread.join()

    for one in (reader, other):
        assert one._metrics_data is not None
        assert values(one._metrics_data, "g") == [1]
    provider.shutdown()


class Stuck(MetricReader):
    """A reader whose shutdown takes as long as the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()

    def _receive_metrics(self, *_: Any, **__: Any) -> None:
        raise OSError("no route")

    def shutdown(self, *_: Any, **__: Any) -> None:
        self.released.wait()


def test_a_reader_that_hangs_holds_up_neither_the_shutdown_nor_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stuck, out = Stuck(), StringIO()
    healthy = PeriodicExportingMetricReader(ConsoleMetricExporter(out=out), math.inf)
    provider = MeterProvider([stuck, healthy], resources, shutdown_on_exit=False)

    began_s = time.monotonic()
    provider.shutdown(timeout_millis=200)

    assert 0.2 <= time.monotonic() - began_s < 1.0
    assert healthy._shutdown
    assert [record.getMessage() for record in caplog.records] == [
        "Stuck: shutdown did not end in time"
    ]
    stuck.released.set()


def test_a_flush_tells_whether_every_reader_managed_it(caplog: pytest.LogCaptureFixture) -> None:
    stuck = Stuck()
    provider = MeterProvider([stuck, InMemoryMetricReader()], resources, shutdown_on_exit=False)
    provider.get_meter("m").create_observable_gauge("g", [observing(Observation(1))])

    assert not provider.force_flush()
    assert [record.getMessage() for record in caplog.records] == [
        "Stuck: force_flush OSError('no route')"
    ]
    provider.remove_metric_reader(stuck, timeout_millis=1)
    assert provider.force_flush()
    stuck.released.set()


def test_a_provider_that_is_shut_down_gives_no_meter(
    reader: InMemoryMetricReader, caplog: pytest.LogCaptureFixture
) -> None:
    provider = MeterProvider([reader], resources, shutdown_on_exit=False)
    assert provider.get_meter("m", "1") is provider.get_meter("m", "1")
    assert provider.get_meter("m", "1") is not provider.get_meter("m", "2")
    provider.shutdown()
    provider.shutdown()

    assert isinstance(provider.get_meter("m", "1"), NoOpMeter)
    assert [record.getMessage() for record in caplog.records] == [
        "the meter provider is shut down already",
        "no meter 'm': it has no name, or the provider is shut down",
    ]


def test_tasks_run_at_once_and_each_is_told_what_became_of_it() -> None:
    together = threading.Barrier(3, timeout=10)

    def meet(_millis: float) -> bool:
        together.wait()
        return True

    def fail(_millis: float) -> bool:
        together.wait()
        return False

    def explode(_millis: float) -> None:
        together.wait()
        raise KeyError("x")

    assert run_all([meet, fail, explode], 10_000) == ["", "reported failure", "KeyError('x')"]
