"""Prometheus's own linter finds no fault in the page of a running agent."""

from pathlib import Path

import pytest

from .agent import Agent
from .binaries import Binaries
from .process import free_ports, get
from .promtool import complaints

pytestmark = pytest.mark.e2e

LATE = ("otel_gpu_scrape_duration_seconds_bucket", "otel_gpu_sweep_duration_seconds_bucket")
"""Families that are there from the second scrape on."""


@pytest.mark.parametrize(
    ("box", "profile"), [("h200x8", "full"), ("a100-mig", "full"), ("rtx4090", "standard")]
)
def test_promtool_has_nothing_to_say(
    binaries: Binaries, tmp_path: Path, box: str, profile: str
) -> None:
    (nobody,) = free_ports(1)
    endpoint = {"endpoint": f"http://127.0.0.1:{nobody}"}  # so that the queue's metrics are there
    config = {"metrics": {"profile": profile}}
    with Agent(
        tmp_path, backend=f"simulated:{box}", pipeline=[{"otlp": endpoint}], config=config
    ) as agent:
        page = agent.wait_until(lambda: complete(get(agent.url)), 10, "all families")
    assert "otel_gpu_queue_size_bytes{" in page
    assert complaints(binaries, page) == ""


def complete(page: str) -> str:
    return page if all(name in page for name in LATE) else ""


def test_promtool_would_complain(binaries: Binaries) -> None:
    found = complaints(binaries, "# TYPE power_milliwatts gauge\npower_milliwatts 1\n")
    assert "exit 3" in found
    assert "no help text" in found
