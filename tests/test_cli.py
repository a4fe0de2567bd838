"""The command line, as a person or a script meets it."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.running import otel_gpu

SIMULATED = ("--backend", "simulated")


def test_once_prints_8_gpus_of_the_simulated_box_as_json() -> None:
    done = otel_gpu("once", *SIMULATED, "--format", "json")
    assert done.returncode == 0, done.stderr
    gpus = json.loads(done.stdout)["gpus"]
    assert len({gpu["identity"]["uuid"] for gpu in gpus}) == 8
    assert all(gpu["up"] and gpu["metrics"] for gpu in gpus)


def test_once_prints_a_table_that_fits_80_columns() -> None:
    done = otel_gpu("once", *SIMULATED, env={"COLUMNS": "80"})
    lines = done.stdout.splitlines()
    assert len(lines) == 9
    assert all(len(line) <= 80 and "…" not in line for line in lines)


def test_once_prints_a_page_and_a_request_of_the_same_points() -> None:
    page = otel_gpu("once", *SIMULATED, "--format", "prometheus").stdout
    request = json.loads(otel_gpu("once", *SIMULATED, "--format", "otlp").stdout)
    families = {family.name for family in text_string_to_metric_families(page)}
    metrics = {
        metric["name"]
        for resource in request["resourceMetrics"]
        for scope in resource["scopeMetrics"]
        for metric in scope["metrics"]
    }
    assert "hw_power_watts" in families
    assert "hw.power" in metrics
    assert len(families) == len(metrics) + 1  # target_info


def test_once_fails_in_one_line_where_there_is_no_driver() -> None:
    done = otel_gpu("once", "--backend", "simulated:t4,fault=absent")
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1


def test_metrics_says_what_each_gpu_offers_and_why_not_the_rest() -> None:
    rows = json.loads(otel_gpu("metrics", "--gpu", *SIMULATED, "--format", "json").stdout)
    fans = next(row for row in rows if row["name"] == "hw.fan.speed_ratio")
    assert len(fans["gpus"]) == 8
    assert set(fans["gpus"].values()) == {"unsupported (this GPU has no fan)"}


def test_a_recording_replays_what_was_recorded(tmp_path: Path) -> None:
    file = tmp_path / "box.json"
    assert otel_gpu("record", str(file), "--sweeps", "1", *SIMULATED).returncode == 0
    replayed = [
        json.loads(otel_gpu("once", "--backend", f"recorded:{file}", "--format", "json").stdout)
        for _ in range(2)
    ]
    assert replayed[0]["gpus"] == replayed[1]["gpus"]
    assert "-0000-4000-8000-" in file.read_text(encoding="utf-8")


def test_demo_says_which_gpus_it_shows_and_serves() -> None:
    done = otel_gpu("demo", "--seconds", "1", "--address", "127.0.0.1:0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(("no GPU here", "showing the GPUs"))
    assert "/metrics" in done.stdout
    assert "nvidia0" in done.stdout


def test_version_prints_them_all_also_without_a_driver() -> None:
    done = otel_gpu("version")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        "otel-gpu",
        "opentelemetry-sdk",
        "NVML",
        "driver",
        "CUDA",
    ]


class TestConfig:
    def test_the_shipped_file_is_sound(self) -> None:
        assert otel_gpu("config", "check", "config/agent.yaml").returncode == 0

    def test_check_lists_every_fault_and_exits_with_2(self, tmp_path: Path) -> None:
        file = tmp_path / "agent.yaml"
        file.write_text("version: 1\nsampling: {fsat: 1s}\nmetrics: {profile: most}\n")
        done = otel_gpu("config", "check", str(file))
        assert done.returncode == 2
        faults = done.stderr.splitlines()
        assert len(faults) == 2
        assert "sampling.fast" in faults[0]

    def test_run_with_a_bad_file_says_the_same(self, tmp_path: Path) -> None:
        file = tmp_path / "agent.yaml"
        file.write_text("version: 1\nsampling: {fsat: 1s}\n")
        assert otel_gpu("run", "--config", str(file)).returncode == 2

    def test_show_says_who_gave_each_value(self, tmp_path: Path) -> None:
        file = tmp_path / "agent.yaml"
        file.write_text("version: 1\nidentity: full\n")
        done = otel_gpu("config", "show", str(file), env={"OTEL_GPU_SAMPLING__FAST": "2s"})
        assert "OTEL_GPU_SAMPLING__FAST" in done.stdout
        assert "agent.yaml:2" in done.stdout

    def test_schema_is_json(self) -> None:
        assert "sampling" in json.loads(otel_gpu("config", "schema").stdout)["properties"]


@pytest.mark.parametrize("words", [("once", "--backend", "nvlm"), ("once", "--format", "yaml")])
def test_a_wrong_word_exits_with_2(words: tuple[str, ...]) -> None:
    done = otel_gpu(*words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(
    version("typer") < "0.29", reason="typer words the help; made files are held to a newer one"
)
def test_made_files_are_what_the_catalog_and_the_settings_make() -> None:
    done = otel_gpu("render", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_doctor_finds_a_healthy_simulated_box_healthy() -> None:
    done = otel_gpu("doctor", *SIMULATED, "--format", "json")
    assert done.returncode == 0, done.stdout
