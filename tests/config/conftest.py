"""A configuration file for each test, and its faults as a user reads them."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pytest

from otel_gpu.config import Loaded, Settings, check, load

from .given import Environ, Faults, Give, Load, Write

VERSION = "version: 1\n"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def agent_yaml(text: str) -> Path:
        path = tmp_path / "agent.yaml"
        path.write_text(VERSION + text, encoding="utf-8")
        return path

    return agent_yaml


@pytest.fixture
def loaded(write: Write) -> Load:
    """Load what follows `version: 1`, so that it begins in line 2."""

    def given(text: str = "", environ: Environ | None = None, **flags: object) -> Loaded:
        dotted = {name.replace("__", "."): value for name, value in flags.items()}
        return load(write(text), environ or {}, dotted)

    return given


@pytest.fixture
def settings(loaded: Load) -> Give:
    def given(text: str = "", environ: Environ | None = None, **flags: object) -> Settings:
        return loaded(text, environ, **flags).settings

    return given


@pytest.fixture
def faults(write: Write) -> Faults:
    """Give the faults of what follows `version: 1`, one string each, without the directory."""

    def given(text: str = "", environ: Environ | None = None, **flags: object) -> list[str]:
        path = write(text)
        dotted = {name.replace("__", "."): value for name, value in flags.items()}
        found = check(path, environ or {}, dotted)
        return [str(fault).replace(f"{path.parent}/", "") for fault in found]

    return given


@pytest.fixture(scope="session")
def installed_parts() -> str:
    """Name the parts that a message lists; an installed package may bring more than our own."""
    installed = {point.name for point in entry_points(group="otel_gpu.pipeline")}
    return ", ".join(sorted(installed | {"prometheus", "otlp", "file", "console"}))
