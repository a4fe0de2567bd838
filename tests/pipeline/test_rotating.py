"""A file of lines is bounded, whole lines only, whatever others do to it."""

from __future__ import annotations

import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.pipeline.rotating import RotatingFile

HELD = 1 << 20


def texts(path: Path) -> dict[str, str]:
    """Give the contents of the file, and of those put aside, by name."""
    return {file.name: file.read_text() for file in sorted(path.parent.iterdir())}


def filled(path: Path, *lines: str, limit: int = HELD, keep: int = 5) -> RotatingFile:
    file = RotatingFile(path, limit, keep)
    for line in lines:
        file.append(f"{line}\n".encode())
    return file


@contextmanager
def disk_of(size: int) -> Iterator[None]:
    """Let files of this process grow no further, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "gpu.jsonl"


def test_lines_are_appended_to_what_is_there(path: Path) -> None:
    filled(path, "a", "b")
    filled(path, "c")
    assert texts(path) == {"gpu.jsonl": "a\nb\nc\n"}


def test_a_file_is_put_aside_before_the_line_that_would_exceed_the_limit(path: Path) -> None:
    filled(path, "aaa", "bbb", "ccc", limit=8)
    assert texts(path) == {"gpu.jsonl": "ccc\n", "gpu.jsonl.1": "aaa\nbbb\n"}


def test_the_newest_files_are_kept(path: Path) -> None:
    filled(path, *"abcde", limit=2, keep=3)
    assert texts(path) == {
        "gpu.jsonl": "e\n",
        "gpu.jsonl.1": "d\n",
        "gpu.jsonl.2": "c\n",
        "gpu.jsonl.3": "b\n",
    }


def test_where_none_is_kept_the_file_begins_anew(path: Path) -> None:
    filled(path, *"abc", limit=4, keep=0)
    assert texts(path) == {"gpu.jsonl": "c\n"}


def test_a_line_over_the_limit_has_a_file_for_itself(path: Path) -> None:
    filled(path, "long line", "a", limit=4)
    assert texts(path) == {"gpu.jsonl": "a\n", "gpu.jsonl.1": "long line\n"}


def test_a_gap_in_the_numbers_is_filled_before_anything_is_dropped(path: Path) -> None:
    """A kill in the middle of a rotation leaves one."""
    for name, text in (("gpu.jsonl", "c\n"), ("gpu.jsonl.2", "b\n"), ("gpu.jsonl.3", "a\n")):
        path.with_name(name).write_text(text)
    filled(path, "d", limit=2, keep=3)
    assert texts(path) == {
        "gpu.jsonl": "d\n",
        "gpu.jsonl.1": "c\n",
        "gpu.jsonl.2": "b\n",
        "gpu.jsonl.3": "a\n",
    }


@given(st.lists(st.integers(0, 12), max_size=30), st.integers(1, 24), st.integers(0, 4))
def test_the_last_lines_are_there_in_order_and_no_file_is_over_the_limit(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], limit: int, keep: int
) -> None:
    path = tmp_path_factory.mktemp("files") / "f"
    lines = [f"{at:02}".ljust(2 + size, ".") for at, size in enumerate(sizes)]
    filled(path, *lines, limit=limit, keep=keep)
    found = [*(path.with_name(f"f.{number}") for number in range(keep, 0, -1)), path]
    kept = [file.read_text().splitlines() for file in found if file.exists()]
    every = [line for file in kept for line in file]
    assert every == lines[len(lines) - len(every) :]
    assert all(len(file) == 1 or sum(len(line) + 1 for line in file) <= limit for file in kept)
    assert not lines or every


def test_half_a_line_is_ended_before_the_next(path: Path) -> None:
    path.write_text('whole\n{"half')
    filled(path, "next")
    assert texts(path) == {"gpu.jsonl": 'whole\n{"half\nnext\n'}


def test_ending_half_a_line_counts_towards_the_limit(path: Path) -> None:
    path.write_text("half")
    filled(path, "abc", limit=8)
    assert texts(path) == {"gpu.jsonl": "abc\n", "gpu.jsonl.1": "half"}


def test_a_full_disk_takes_no_part_of_a_line(path: Path) -> None:
    file = filled(path, "first")
    with disk_of(10), pytest.raises(OSError, match="too large"):
        file.append(b"a longer line\n")
    assert texts(path) == {"gpu.jsonl": "first\n"}
    file.append(b"next\n")
    assert texts(path) == {"gpu.jsonl": "first\nnext\n"}


def test_a_file_that_is_renamed_by_others_is_left_to_them(path: Path) -> None:
    file = filled(path, "a")
    path.rename(path.with_name("rotated"))
    file.append(b"b\n")
    assert texts(path) == {"gpu.jsonl": "b\n", "rotated": "a\n"}


def test_a_file_that_is_emptied_by_others_is_written_from_its_beginning(path: Path) -> None:
    file = filled(path, "a")
    os.truncate(path, 0)
    file.append(b"b\n")
    assert texts(path) == {"gpu.jsonl": "b\n"}


def test_what_a_link_leads_to_is_put_aside_and_the_link_stays(path: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    path.symlink_to(disk / "big")
    filled(path, "a", "b", limit=2)
    assert path.is_symlink()
    assert texts(disk / "big") == {"big": "b\n", "big.1": "a\n"}


def test_only_its_user_and_group_may_read_it(path: Path) -> None:
    before = os.umask(0)
    try:
        filled(path, "a", "b", limit=2)
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()]
    assert modes == [0o640, 0o640]
