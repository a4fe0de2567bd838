"""A file of headers is read, or refused without showing what is in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from otel_gpu.model import ConfigError
from otel_gpu.pipeline.headers import read_headers


def test_headers_are_read_in_both_spellings(tmp_path: Path) -> None:
    path = tmp_path / "headers"
    path.write_text(
        "# credentials\n\nAuthorization: Bearer a=b:c\nx-scope=team-a \n  x-empty:\n",
        encoding="utf-8",
    )

    assert read_headers(path) == {
        "Authorization": "Bearer a=b:c",
        "x-scope": "team-a",
        "x-empty": "",
    }


def test_no_file_is_no_headers() -> None:
    assert read_headers(None) == {}


@pytest.mark.parametrize("line", ["s3cret", ": s3cret", "two words: s3cret", "ké: s3cret"])
def test_a_line_that_is_no_header_is_named_by_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "headers"
    path.write_text(f"a: b\n{line}\n", encoding="utf-8")

    with pytest.raises(ConfigError, match=r"headers_file: .*headers, line 2: not a header") as told:
        read_headers(path)

    assert "s3cret" not in str(told.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"headers_file: .*nowhere.*No such file"):
        read_headers(tmp_path / "nowhere")
