"""The file has a line for each collection, and says what is in its way."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from otel_gpu.config import File
from otel_gpu.model import ConfigError
from otel_gpu.pipeline import Context
from otel_gpu.pipeline.file import build
from otel_gpu.pipeline.push import PushReader
from tests.pipeline.box import POINTS, Box
from tests.running import free_port, page, running, wait_for


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    there = tmp_path / "data"
    there.mkdir()
    return there


@pytest.fixture
def reader(folder: Path) -> Iterator[PushReader]:
    """Make a part that puts its file aside after every line, on a box."""
    made = build(File(path=folder / "gpu.jsonl", rotate=1, keep=1), Context(node="box"))
    box = Box([made])
    yield made
    box.provider.shutdown()


def names(path: Path) -> list[set[str]]:
    """Give the names of the metrics on each line."""
    return [
        {
            metric["name"]
            for resource in json.loads(line)["resourceMetrics"]
            for scope in resource["scopeMetrics"]
            for metric in scope["metrics"]
        }
        for line in path.read_text().splitlines()
    ]


def test_each_collection_is_a_line(folder: Path) -> None:
    path = folder / "gpu.jsonl"
    reader = build(File(path=path), Context(node="box"))
    box = Box([reader])
    assert reader.force_flush()
    box.provider.shutdown()  # which collects once more
    first, second = names(path)
    assert first == second >= {"hw.power", "hw.energy", "otel_gpu.sweep.duration"}
    assert reader.stats.exported == 2 * POINTS


def test_files_are_put_aside_as_configured(folder: Path, reader: PushReader) -> None:
    for _ in range(3):
        assert reader.force_flush()
    assert sorted(file.name for file in folder.iterdir()) == ["gpu.jsonl", "gpu.jsonl.1"]
    assert names(folder / "gpu.jsonl") == names(folder / "gpu.jsonl.1")


def test_what_cannot_be_written_is_counted_and_told_once_and_the_next_works_again(
    folder: Path, reader: PushReader, caplog: pytest.LogCaptureFixture
) -> None:
    away = folder.rename(folder.with_name("away"))
    assert not reader.force_flush()
    assert not reader.force_flush()
    away.rename(folder)
    assert reader.force_flush()
    assert reader.stats.failed == {"FileNotFoundError": 2 * POINTS}
    assert reader.stats.exported == POINTS
    (told,) = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert told.getMessage().startswith(f"file {folder}/gpu.jsonl: {POINTS} points were not ")


def test_the_file_is_made_at_the_start(folder: Path, reader: PushReader) -> None:
    assert reader.stats.exported == 0
    assert (folder / "gpu.jsonl").read_text() == ""


def no_folder(folder: Path) -> Path:
    return folder / "none" / "gpu.jsonl"


def a_folder(folder: Path) -> Path:
    return folder


def a_pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (no_folder, "{}: No such file or directory; name a file in a directory that is there"),
        (a_folder, "{}: not a regular file; name a file"),
        (a_pipe, "{}: not a regular file; name a file"),
    ],
)
def test_a_path_that_cannot_be_written_is_refused_at_the_start(
    folder: Path, make: Callable[[Path], Path], words: str
) -> None:
    path = make(folder)
    with pytest.raises(ConfigError) as told:
        build(File(path=path), Context())
    assert str(told.value).startswith(f"pipeline.file.path: {words.format(path)}")


def test_a_folder_in_which_nothing_can_be_put_aside_is_refused_at_the_start(folder: Path) -> None:
    path = folder / "gpu.jsonl"
    path.touch()
    folder.chmod(0o500)
    if os.access(folder, os.W_OK):
        pytest.skip("root may write anywhere")
    with pytest.raises(ConfigError, match=f"{folder}: no file can be put aside in it; "):
        build(File(path=path), Context())


def test_the_agent_writes_what_it_reads(folder: Path) -> None:
    path, config, port = folder / "gpu.jsonl", folder / "agent.json", free_port()
    pipeline = [
        {"file": {"path": str(path)}},
        {"prometheus": {"address": f"127.0.0.1:{port}"}},
    ]
    config.write_text(json.dumps({"version": 1, "backend": "simulated:t4", "pipeline": pipeline}))
    with running("run", "--config", str(config)) as agent:
        wait_for(lambda: page(port, "/readyz?fresh=1"), "readings")
        agent.terminate()  # the last collection is written without waiting for a tick
        assert agent.wait(5) == 0
    assert names(path)[-1] >= {"hw.power", "otel_gpu.nvml.up"}
