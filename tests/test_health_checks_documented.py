"""What docs/health-checks.md says to install, installed: the plug-in and the script."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.running import command, otel_gpu

TEXT = (Path(__file__).parents[1] / "docs" / "health-checks.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    return str(found)


def test_the_plug_in_runs_a_command_that_there_is() -> None:
    plugin = json.loads(block("json"))
    (rule,) = plugin["rules"]
    assert rule["condition"] == plugin["conditions"][0]["type"]
    done = otel_gpu(*rule["args"], env={"OTEL_GPU_BACKEND": "simulated"})
    assert (done.returncode, done.stdout) == (0, "healthy: 8 GPUs\n")


@pytest.mark.parametrize(
    ("backend", "state", "drained"),
    [
        ("simulated", "IDLE", False),
        ("simulated:h200x8,fault=lost:GPU3", "MIXED", True),
        ("simulated:h200x8,fault=lost:GPU3", "IDLE+DRAIN", False),
    ],
)
def test_the_script_drains_a_node_that_is_ill_once(
    backend: str, state: str, *, drained: bool, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    programs = {
        "otel-gpu": f'exec {" ".join(command())} "$@"',
        "scontrol": f'[ "$1" = show ] && echo "   State={state} Cores=2" || echo "$@" > {told}',
    }
    for name, body in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    script = tmp_path / "gpu-health"
    script.write_text(block("bash"), encoding="utf-8")
    path = f"{tmp_path}:{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "OTEL_GPU_BACKEND": backend}
    subprocess.run(["/bin/bash", str(script)], env=environ, check=True, timeout=30)
    assert told.exists() == drained
    if drained:
        assert "state=drain reason=otel-gpu: failed: GPU 3 is lost" in told.read_text("utf-8")
