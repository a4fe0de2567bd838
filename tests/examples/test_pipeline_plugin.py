"""The example of a pipeline part is found once it is installed, runs, and says what is wrong."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics.export import MetricReader
from prometheus_client.parser import text_string_to_metric_families

from otel_gpu.model import ConfigError
from otel_gpu.pipeline import Context, load
from tests.pipeline.box import Box
from tests.running import otel_gpu, running, wait_for

PACKAGE = Path(__file__).parents[2] / "examples" / "pipeline-plugin"
MODULE = "otel_gpu_textfile"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lay the package out as pip does, without a network; also for processes started here."""
    site = tmp_path / "site"
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    metadata = site / f"{MODULE}-{project['version']}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = ConfigParser()
    points.read_dict(project["entry-points"])
    with (metadata / "entry_points.txt").open("w") as file:
        points.write(file)
    (site / f"{MODULE}.py").write_text((PACKAGE / f"{MODULE}.py").read_text())
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", str(site))
    return site


@pytest.fixture
def make(installed: Path) -> Iterator[Callable[..., MetricReader]]:
    """Give what makes the part from its options; what it made is ended."""
    del installed
    made: list[MetricReader] = []

    def build(**options: Any) -> MetricReader:
        made.append(load("textfile")(options, Context(node="box")))
        return made[-1]

    yield build
    for reader in made:
        reader.shutdown()


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "otel_gpu.prom"


def config(tmp_path: Path, **part: object) -> str:
    file = tmp_path / "agent.json"
    file.write_text(json.dumps({"version": 1, "backend": "simulated:t4", "pipeline": [part]}))
    return str(file)


def test_the_page_is_written_whole_and_goes_with_the_agent(
    make: Callable[..., MetricReader], page: Path
) -> None:
    reader = make(path=str(page))
    box = Box([reader])
    assert reader.force_flush()
    families = {family.name for family in text_string_to_metric_families(page.read_text())}
    assert families >= {"hw_power_watts", "hw_energy_joules", "otel_gpu_sweep_duration_seconds"}
    assert [file.name for file in page.parent.glob("otel_gpu.prom*")] == [page.name]
    box.provider.shutdown()
    assert not page.exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "path: name a file that ends in .prom; no other is collected"),
        ({"path": 7}, "path: name a file that ends in .prom; no other is collected"),
        ({"path": "/none/x.prom"}, "path: /none is not there; name node_exporter's folder"),
        ({"path": "x.prom", "every": "1s"}, "every: unknown key; those here are path and interval"),
        (
            {"path": "x.prom", "interval": "soon"},
            "interval: soon is not a duration, such as 500ms, 15s, 1m or 2h",
        ),
        ({"path": "x.prom", "interval": "1ms"}, "interval: 1ms is too often; 1s is the least"),
    ],
)
def test_options_that_cannot_work_are_refused(
    make: Callable[..., MetricReader], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError) as told:
        make(**options)
    assert str(told.value) == f"pipeline.textfile.{words}"


def test_the_agent_runs_it(installed: Path, tmp_path: Path, page: Path) -> None:
    del installed
    file = config(tmp_path, textfile={"path": str(page), "interval": "1s"})
    assert otel_gpu("config", "check", file).returncode == 0
    with running("run", "--config", file) as agent:
        text = wait_for(lambda: page.read_text() if page.exists() else "", "page")
        agent.terminate()
        assert agent.wait(5) == 0
    assert "otel_gpu_nvml_up" in text
    assert not page.exists()


def test_the_agent_does_not_start_with_options_that_cannot_work(
    installed: Path, tmp_path: Path
) -> None:
    del installed
    ended = otel_gpu("run", "--config", config(tmp_path, textfile={"path": "gpu.txt"}))
    assert ended.returncode == 2
    last = ended.stderr.splitlines()[-1]  # the driver's state may be logged before
    assert last.startswith("pipeline.textfile.path: name a file that ends in .prom")


def test_its_name_is_suggested_where_it_is_installed(installed: Path, tmp_path: Path) -> None:
    del installed
    checked = otel_gpu("config", "check", config(tmp_path, textfil={}))
    assert checked.returncode == 2
    assert "pipeline[0].textfil: unknown part; did you mean textfile?" in checked.stderr


def test_where_it_is_not_installed_another_is_suggested(tmp_path: Path) -> None:
    checked = otel_gpu("config", "check", config(tmp_path, textfile={}))
    assert checked.returncode == 2
    assert "pipeline[0].textfile: unknown part; did you mean file?" in checked.stderr
