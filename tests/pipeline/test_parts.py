"""A part of the pipeline is found by its name, built in or installed."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from opentelemetry.sdk.resources import Resource

from otel_gpu.model import ConfigError, Snapshot
from otel_gpu.pipeline import BUILT_IN, GROUP, Context, console, file, load, otlp, prometheus


def test_the_built_in_parts_need_no_installation() -> None:
    found = {name: load(name) for name in BUILT_IN}
    assert found == {
        "prometheus": prometheus.build,
        "otlp": otlp.build,
        "file": file.build,
        "console": console.build,
    }


def test_an_installed_part_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = tmp_path / "acme_way_out-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-way-out\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\nacme = acme_way_out:build\n")
    (tmp_path / "acme_way_out.py").write_text("def build(options, context):\n    return 'acme'\n")
    monkeypatch.syspath_prepend(tmp_path)

    assert load("acme").__module__ == "acme_way_out"
    sys.modules.pop("acme_way_out")


def test_a_part_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(ConfigError) as told:
        load("promtheus")
    before, _, names = str(told.value).partition(": use one of ")
    assert before == "pipeline: there is no part 'promtheus'"
    assert set(BUILT_IN) <= set(names.split(", "))


def test_the_entry_points_of_the_installed_package_are_the_built_in_ones() -> None:
    installed = {
        point.name: point.value
        for point in entry_points(group=GROUP)
        if point.value.startswith("otel_gpu.")
    }
    if not installed:
        pytest.skip("otel-gpu runs from its source tree and is not installed")
    assert installed == {name: f"{module}:build" for name, module in BUILT_IN.items()}


def test_a_context_without_an_agent_offers_nothing_and_complains_of_nothing() -> None:
    context = Context()
    assert (context.healthy(), context.ready(), context.fresh()) == (None, None, None)
    assert context.status() == {}
    assert context.snapshot() == Snapshot()
    assert context.resource() == Resource.get_empty()
    context.record("otel_gpu.scrape.duration", 0.1, ())
