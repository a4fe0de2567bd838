"""The servers themselves: what is sent to them, or scraped by them, is found in them again."""

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from .binaries import Binaries
from .process import get, post_json
from .servers import Collector, Prometheus

pytestmark = pytest.mark.e2e

GAUGE = "nvidia.gpu.tensor.active"  # unit 1
COUNTER = "hw.energy"  # unit J
SERIES = {"nvidia_gpu_tensor_active_ratio", "hw_energy_joules_total"}

EXPORTER_PAGE = """\
# HELP room_temperature_celsius How warm it is.
# TYPE room_temperature_celsius gauge
room_temperature_celsius{room="lab"} 21.5
"""


class Exporter(BaseHTTPRequestHandler):
    """The smallest exporter."""

    def do_GET(self) -> None:
        body = EXPORTER_PAGE.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  named by the base class
        """Stay quiet."""


@pytest.fixture
def target() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Exporter) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def collector(binaries: Binaries, tmp_path: Path, target: str) -> Iterator[Collector]:
    with Collector(binaries, tmp_path, targets=[target]) as server:
        yield server


@pytest.fixture
def prometheus(binaries: Binaries, tmp_path: Path, target: str) -> Iterator[Prometheus]:
    with Prometheus(binaries, tmp_path, targets=[target]) as server:
        yield server


def request_of_two_gpus() -> dict[str, Any]:
    """An ExportMetricsServiceRequest with a Resource per GPU."""
    return {"resourceMetrics": [_resource_metrics(gpu) for gpu in ("GPU-0", "GPU-1")]}


def _resource_metrics(gpu: str) -> dict[str, Any]:
    attributes = _attributes({"service.name": "otel-gpu", "service.instance.id": gpu})
    return {
        "resource": {"attributes": attributes},
        "scopeMetrics": [{"scope": {"name": "otel_gpu", "version": "1"}, "metrics": _metrics(gpu)}],
    }


def _metrics(gpu: str) -> list[dict[str, Any]]:
    point = {"attributes": _attributes({"hw.id": gpu}), "timeUnixNano": str(time.time_ns())}
    energy = {
        "aggregationTemporality": 2,  # cumulative
        "isMonotonic": True,
        "dataPoints": [point | {"asInt": "1000"}],
    }
    return [
        {"name": GAUGE, "unit": "1", "gauge": {"dataPoints": [point | {"asDouble": 0.25}]}},
        {"name": COUNTER, "unit": "J", "sum": energy},
    ]


def _attributes(pairs: dict[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in pairs.items()]


def names(batches: list[dict[str, Any]]) -> set[str]:
    """The names of all metrics in OTLP/JSON requests."""
    return {
        metric["name"]
        for batch in batches
        for resource in batch["resourceMetrics"]
        for scope in resource["scopeMetrics"]
        for metric in scope["metrics"]
    }


def test_collector_keeps_what_was_sent(collector: Collector) -> None:
    post_json(f"{collector.http_endpoint}/v1/metrics", request_of_two_gpus())

    collector.wait_for(lambda batches: {GAUGE, COUNTER} <= names(batches))
    collector.wait_until(
        lambda: all(f"\n{each}{{" in get(collector.prometheus_url) for each in SERIES),
        timeout=10,
        what="the same on the page",
    )


def test_collector_keeps_what_it_scraped(collector: Collector) -> None:
    collector.wait_for(lambda batches: "room_temperature_celsius" in names(batches))


def test_collector_keeps_its_file_over_a_restart(collector: Collector) -> None:
    post_json(f"{collector.http_endpoint}/v1/metrics", request_of_two_gpus())
    collector.stop()
    collector.start()

    assert GAUGE in names(collector.batches())


def test_prometheus_takes_otlp(prometheus: Prometheus) -> None:
    post_json(f"{prometheus.otlp_endpoint}/v1/metrics", request_of_two_gpus())

    found = prometheus.wait_for_query('{job="otel-gpu", hw_id="GPU-1"}')
    assert {each["metric"]["__name__"] for each in found} == SERIES


def test_prometheus_scrapes(prometheus: Prometheus) -> None:
    (found,) = prometheus.wait_for_query("room_temperature_celsius")

    assert found["value"][1] == "21.5"
    (about,) = prometheus.metadata("room_temperature_celsius")
    assert about["type"] == "gauge"
    assert prometheus.series("room_temperature_celsius")[0]["room"] == "lab"
