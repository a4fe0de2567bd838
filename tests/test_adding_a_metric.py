"""Adding a metric touches one file: a record in a copy of the package is found everywhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import otel_gpu

RECORD = """
ENCODER_CAPACITY = Metric(
    name="nvidia.gpu.encoder.capacity",
    kind=Kind.GAUGE,
    unit="1",
    brief="Part of the encoder's capacity that is left.",
    read=call("nvmlDeviceGetEncoderCapacity", 0, scale=1e-2),
    typical=(0.2, 0.8),
)

METRICS = (ENCODER_CAPACITY, """


def otel_gpu_of(home: Path, *words: str) -> str:
    """Run the command line of the copy."""
    done = subprocess.run(
        [sys.executable, "-m", "otel_gpu", *words],
        capture_output=True,
        text=True,
        check=True,
        cwd=home,
        env={**os.environ, "PYTHONPATH": str(home)},
    )
    return done.stdout


def test_one_record_in_one_file_is_found_in_docs_simulation_and_output(tmp_path: Path) -> None:
    package = Path(otel_gpu.__file__).parent
    shutil.copytree(package, tmp_path / "otel_gpu", ignore=shutil.ignore_patterns("__pycache__"))
    family = tmp_path / "otel_gpu" / "catalog" / "utilization.py"
    text = family.read_text(encoding="utf-8")
    family.write_text(text.replace("\nMETRICS = (", RECORD), encoding="utf-8")

    once = json.loads(otel_gpu_of(tmp_path, "once", "--backend", "simulated", "--format", "json"))
    page = otel_gpu_of(tmp_path, "once", "--backend", "simulated", "--format", "prometheus")
    docs = otel_gpu_of(tmp_path, "metrics", "--format", "markdown")

    values = [
        gpu["metrics"]["nvidia.gpu.encoder.capacity"]["points"][0]["value"] for gpu in once["gpus"]
    ]
    assert len(values) == 8
    assert all(0.2 <= value <= 0.8 for value in values)
    assert page.count("\nnvidia_gpu_encoder_capacity_ratio{") == 8
    assert "### `nvidia.gpu.encoder.capacity`" in docs
    assert "`nvmlDeviceGetEncoderCapacity(0)`" in docs
