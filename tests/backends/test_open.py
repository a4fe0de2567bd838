from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from otel_gpu.backends import FORMS, open_backend
from otel_gpu.backends.nvml import NvmlBackend
from otel_gpu.backends.recorded import RecordedBackend
from otel_gpu.backends.simulated import SimulatedBackend
from otel_gpu.model import ConfigError


class Plugged:
    """A third party's backend; it is only made here."""

    def __init__(self, spec: str = "none") -> None:
        self.spec = spec


def test_each_name_makes_its_backend(tmp_path: Path) -> None:
    assert isinstance(open_backend("nvml"), NvmlBackend)
    assert isinstance(open_backend("simulated"), SimulatedBackend)
    assert isinstance(open_backend(f"recorded:{tmp_path}/a:b.json"), RecordedBackend)


@pytest.mark.parametrize(("suffix", "spec"), [("", "none"), (":", ""), (":/a/b:c", "/a/b:c")])
def test_a_class_of_somebody_elses_is_made_with_what_stands_behind_it(
    suffix: str, spec: str
) -> None:
    backend = open_backend(f"python:{Plugged.__module__}:Plugged{suffix}")
    assert isinstance(backend, Plugged)
    assert backend.spec == spec


@pytest.mark.parametrize(
    "name", ["", "nvmll", "nvml:0", "recorded", "recorded:", "python:json", "dcgm:5555"]
)
def test_a_name_that_is_not_known_is_refused_with_those_that_are(name: str) -> None:
    with pytest.raises(ConfigError) as error:
        open_backend(name)
    assert str(error.value) == f"backend {name!r} is not known: write {FORMS}"


@pytest.mark.parametrize("name", ["python:no_such:Class", "python:json:NoSuchClass"])
def test_a_class_that_cannot_be_loaded_is_named_with_the_reason(name: str) -> None:
    with pytest.raises(ConfigError, match=r"cannot be loaded: .*(no_such|NoSuchClass)"):
        open_backend(name)


def test_nothing_is_imported_that_was_not_asked_for() -> None:
    program = """
import sys
from otel_gpu.backends import open_backend
open_backend("recorded:nothing.json")
print(*{name.partition(".")[0] for name in sys.modules})
"""
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not set(ran.stdout.split()) & {"pynvml", "pydantic", "opentelemetry", "yaml"}
