"""Real servers on both sides of the agent: every way out carries the same series and values.

The agent replays a recording of the simulated box, whose last answers repeat: so a value is the
same whenever it is read, and every way can be compared to the letter.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from .agent import Agent
from .binaries import Binaries
from .process import get
from .servers import JSON, Collector, Prometheus

pytestmark = pytest.mark.e2e

GPU_METRICS = ("hw_", "nvidia_")
FROM_TARGET = ("job", "instance", "exported_job", "exported_instance")
PERIOD = "1s"

Values = dict[tuple[str, frozenset[tuple[str, str]]], float]


def otlp(endpoint: str, protocol: str = "http/protobuf") -> JSON:
    return {"otlp": {"endpoint": endpoint, "protocol": protocol, "interval": PERIOD}}


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "box.json"
    command = [sys.executable, "-m", "otel_gpu", "record", str(path), "--sweeps", "1"]
    subprocess.run([*command, "--backend", "simulated:h200x8,gpus=2"], check=True)
    return path


@pytest.fixture
def collectors(binaries: Binaries, tmp_path: Path) -> Iterator[tuple[Collector, Collector]]:
    for name in ("http", "grpc"):
        (tmp_path / name).mkdir()
    page = {
        "without_scope_info": True
    }  # its exporter adds otel_scope_* labels, Prometheus does not
    with (
        Collector(binaries, tmp_path / "http", page=page) as over_http,
        Collector(binaries, tmp_path / "grpc", page=page) as over_grpc,
    ):
        yield over_http, over_grpc


def of_gpus(values: Values) -> Values:
    return {key: value for key, value in values.items() if key[0].startswith(GPU_METRICS)}


def page_values(page: str) -> Values:
    """Read a page; what a server adds to say where a series is from is left out."""
    return of_gpus(
        {
            (sample.name, labels(sample.labels)): sample.value
            for family in text_string_to_metric_families(page)
            for sample in family.samples
        }
    )


def labels(every: dict[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset(
        (key, value) for key, value in every.items() if key not in (*FROM_TARGET, "__name__")
    )


def stored_values(prometheus: Prometheus, selector: str) -> Values:
    answer = prometheus.query(f'{{__name__=~"(hw|nvidia)_.*", {selector}}}')
    return {
        (one["metric"]["__name__"], labels(one["metric"])): float(one["value"][1]) for one in answer
    }


def batch_values(batch: JSON) -> dict[tuple[str, str, str], float]:
    """Give the last value of every point in OTLP's own words: name, hw.id, attributes."""
    found: dict[tuple[str, str, str], float] = {}
    for resource in batch["resourceMetrics"]:
        for scope in resource["scopeMetrics"]:
            for metric in scope["metrics"]:
                for point in metric.get("gauge", metric.get("sum", {})).get("dataPoints", []):
                    found[key_of(metric, point)] = number(point)
    return {key: value for key, value in found.items() if key[0].startswith(("hw.", "nvidia."))}


def key_of(metric: JSON, point: JSON) -> tuple[str, str, str]:
    attributes = {one["key"]: text_of(one["value"]) for one in point.get("attributes", [])}
    gpu = attributes.pop("hw.id", "")
    return metric["name"], gpu, str(sorted(attributes.items()))


def text_of(value: JSON) -> str:
    return str(next(iter(value.values())))


def number(point: JSON) -> float:
    value: Any = point.get("asDouble", point.get("asInt"))
    return float(value)


def test_every_way_out_carries_the_same_series_with_the_same_values(
    binaries: Binaries,
    tmp_path: Path,
    recording: Path,
    collectors: tuple[Collector, Collector],
) -> None:
    over_http, over_grpc = collectors
    with Prometheus(binaries, tmp_path) as ingesting:
        pipeline = [
            otlp(over_http.http_endpoint),
            otlp(f"http://{over_grpc.grpc_endpoint}", "grpc"),
            otlp(ingesting.otlp_endpoint),
        ]
        config = {"metrics": {"profile": "full", "enable": ["nvidia.gpu.pcie.throughput"]}}
        agent = Agent(tmp_path, backend=f"recorded:{recording}", pipeline=pipeline, config=config)
        (tmp_path / "scraping").mkdir()
        with agent, Prometheus(binaries, tmp_path / "scraping", targets=[agent.target]) as scraping:
            pulled = page_values(get(agent.url))
            pushed = [
                collector.wait_for(lambda batches: len(batches) >= 2)[-1]
                for collector in collectors
            ]
            ingesting.wait_for_query('hw_power_watts{job="otel-gpu"}')
            scraping.wait_for_query('hw_power_watts{job="e2e"}')
            shown = [page_values(get(collector.prometheus_url)) for collector in collectors]
            stored = [
                stored_values(ingesting, 'job="otel-gpu"'),
                stored_values(scraping, 'job="e2e"'),
            ]

    assert len(pulled) > 100
    assert batch_values(pushed[0]) == batch_values(pushed[1])
    assert len(batch_values(pushed[0])) == len(pulled)
    for way in (*shown, *stored):
        assert way == pulled


def test_a_collector_that_scrapes_has_the_same_series(
    binaries: Binaries, tmp_path: Path, recording: Path
) -> None:
    page = {"without_scope_info": True}
    with (
        Agent(tmp_path, backend=f"recorded:{recording}") as agent,
        Collector(binaries, tmp_path, targets=[agent.target], page=page) as collector,
    ):
        pulled = page_values(get(agent.url))
        collector.wait_for(lambda batches: any(map(scraped_power, batches)))
        assert page_values(get(collector.prometheus_url)) == pulled


def scraped_power(batch: JSON) -> bool:
    return any(
        metric["name"] == "hw_power_watts"
        for resource in batch.get("resourceMetrics", [])
        for scope in resource["scopeMetrics"]
        for metric in scope["metrics"]
    )


def test_receive_is_not_transmit(tmp_path: Path, recording: Path) -> None:
    config = {"metrics": {"enable": ["nvidia.gpu.pcie.throughput"]}}
    with Agent(tmp_path, backend=f"recorded:{recording}", config=config) as agent:
        values = page_values(get(agent.url))
    directions = {
        direction: value
        for (name, every), value in values.items()
        if name == "nvidia_gpu_pcie_throughput_bytes_per_second" and ("hw_name", "nvidia0") in every
        for key, direction in every
        if key == "network_io_direction"
    }
    assert set(directions) == {"receive", "transmit"}
    assert directions["receive"] != directions["transmit"]
