"""Real servers on both sides of the agent: every way out carries the same series and values.

The agent replays a recording of the simulated box, whose last answers repeat: so a value is the
same whenever it is read, and every way can be compared to the letter.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .agent import Agent
from .binaries import Binaries
from .process import get
from .series import batch_values, metrics_of, of_gpus, page_values, stored_values
from .servers import JSON, Collector, Prometheus

pytestmark = pytest.mark.e2e

PERIOD = "1s"
PAGE = {"without_scope_info": True}  # its exporter adds otel_scope_* labels, Prometheus does not


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
    with (
        Collector(binaries, tmp_path / "http", page=PAGE) as over_http,
        Collector(binaries, tmp_path / "grpc", page=PAGE) as over_grpc,
    ):
        yield over_http, over_grpc


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
            pulled = of_gpus(page_values(get(agent.url)))
            pushed = [
                collector.wait_for(lambda batches: len(batches) >= 2)[-1]
                for collector in collectors
            ]
            ingesting.wait_for_query('hw_power_watts{job="otel-gpu"}')
            scraping.wait_for_query('hw_power_watts{job="e2e"}')
            shown = [page_values(get(collector.prometheus_url)) for collector in collectors]
            stored = [stored_values(ingesting, "otel-gpu"), stored_values(scraping, "e2e")]

    assert len(pulled) > 100
    assert batch_values(pushed[0]) == batch_values(pushed[1])
    assert len(batch_values(pushed[0])) == len(pulled)
    for way in (*shown, *stored):
        assert of_gpus(way) == pulled


def test_a_collector_that_scrapes_has_the_same_series(
    binaries: Binaries, tmp_path: Path, recording: Path
) -> None:
    with (
        Agent(tmp_path, backend=f"recorded:{recording}") as agent,
        Collector(binaries, tmp_path, targets=[agent.target], page=PAGE) as collector,
    ):
        pulled = of_gpus(page_values(get(agent.url)))
        collector.wait_for(lambda batches: any(map(scraped_power, batches)))
        assert of_gpus(page_values(get(collector.prometheus_url))) == pulled


def scraped_power(batch: JSON) -> bool:
    return any(metric["name"] == "hw_power_watts" for metric in metrics_of(batch))


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
