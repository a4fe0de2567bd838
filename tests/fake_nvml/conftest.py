from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.fake_nvml.library import Build, compiled, linked
from tests.fake_nvml.machine import FakeNvml


@pytest.fixture(scope="session")
def objects(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """Compile the fake once."""
    if not shutil.which("gcc"):
        reason = "the fake NVML is built with gcc, which is not here"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    return compiled(tmp_path_factory.mktemp("fake_nvml"))


@pytest.fixture(scope="session")
def build(objects: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Give the folder of a library without some functions; each is linked once."""
    built: dict[frozenset[str], Path] = {}

    def library(without: Collection[str]) -> Path:
        key = frozenset(without)
        if key not in built:
            built[key] = linked(objects, tmp_path_factory.mktemp("library") / "lib", key)
        return built[key]

    return library


@pytest.fixture
def fake_nvml(build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """Give a machine without GPUs, whose driver every process finds that this one starts."""
    fake = FakeNvml(tmp_path / "machine", build(()))
    for name, value in fake.environ.items():
        monkeypatch.setenv(name, value)
    return fake
