"""What is made from files follows them, whenever they change."""

from __future__ import annotations

from pathlib import Path

import pytest

from otel_gpu.model import ConfigError
from otel_gpu.pipeline.watched import Watched


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_text("one")
    return path


def test_nothing_is_made_while_nothing_changes(file: Path) -> None:
    made: list[str] = []

    def make() -> int:
        made.append(file.read_text())
        return len(made)

    watched = Watched(make, lambda _: [file])

    assert [watched.current(), watched.current()] == [1, 1]
    file.write_text("two!")
    assert [watched.current(), watched.current()] == [2, 2]
    assert made == ["one", "two!"]


def test_what_is_written_while_it_is_read_is_read_again(file: Path) -> None:
    """As a key that is written right after its certificate, with which it did not go yet."""
    written = ["three"]

    def make() -> str:
        text = file.read_text()
        if text == "two":
            file.write_text(written.pop())
            raise ConfigError("they do not belong together")
        return text

    watched = Watched(make, lambda _: [file])
    file.write_text("two")

    assert [watched.current(), watched.current()] == ["one", "three"]


def test_files_that_are_named_anew_are_followed(file: Path) -> None:
    other = file.with_name("other")
    other.write_text("first")

    def make() -> str:
        return file.read_text() if file.read_text() == "one" else other.read_text()

    watched = Watched(make, lambda now: [file] if now == "one" else [file, other])
    file.write_text("use the other")
    assert watched.current() == "first"
    other.write_text("second")

    assert watched.current() == "second"


def test_files_are_not_looked_at_more_often_than_asked_for(file: Path) -> None:
    watched = Watched(file.read_text, lambda _: [file], every_s=3600.0)
    file.write_text("two!")

    assert watched.current() == "one"
