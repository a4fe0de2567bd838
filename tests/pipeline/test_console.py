"""The console shows a line for each GPU, with what a person looks at first."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricsData

from otel_gpu.config import Console
from otel_gpu.model import ResourceKey, Series
from otel_gpu.pipeline import Context
from otel_gpu.pipeline.console import LineExporter, build, lines
from otel_gpu.provider import MeterProvider
from tests.pipeline.box import Box, Reading, collected, observing, reading


def test_each_gpu_is_a_line() -> None:
    assert list(lines(collected())) == [
        "nvidia0  utilization 87%  memory 40.0 GiB  power 412 W  status ok",
        "nvidia1  utilization 0%  power 71 W",
    ]


def test_an_instance_is_told_from_its_gpu() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    mig: dict[str, str | int] = {
        "nvidia.gpu.mig.profile": "1g.18gb",
        "nvidia.gpu.mig.gpu_instance": 7,
    }
    gpu = reading(5 << 30, ResourceKey("GPU-0"), hw_name="nvidia0")
    instance = Reading(
        3 << 30,
        Series({"hw.id": "MIG-1", "hw.name": "nvidia0", **mig}, ResourceKey("MIG-1")),
    )
    provider.get_meter("m").create_observable_up_down_counter(
        "hw.gpu.memory.usage", observing(instance, gpu)
    )
    data = reader.get_metrics_data()
    assert data is not None

    assert list(lines(data)) == [
        "nvidia0  memory 5.0 GiB",
        "nvidia0 1g.18gb 7 memory 3.0 GiB",
    ]


def test_nothing_to_show_is_said() -> None:
    assert list(lines(MetricsData([]))) == ["no GPU has readings"]


def test_lines_begin_with_the_time() -> None:
    out = StringIO()
    LineExporter(out).export(collected())
    first, second = out.getvalue().splitlines()
    assert re.fullmatch(r"\d\d:\d\d:\d\d nvidia0  utilization 87% .*", first)
    assert second.endswith(" nvidia1  utilization 0%  power 71 W")


def test_the_part_writes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    reader = build(Console(), Context(node="box"))
    box = Box([reader])
    assert reader.force_flush()
    box.provider.shutdown()
    assert "nvidia0  utilization 87%" in capsys.readouterr().out
