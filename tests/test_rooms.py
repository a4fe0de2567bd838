"""Rules about the package as a whole that no linter holds."""

from __future__ import annotations

from pathlib import Path

import pytest

import otel_gpu

ROOT = Path(otel_gpu.__file__).parents[1]
FILES = [
    path for room in ("otel_gpu", "tests", "bench") for path in sorted((ROOT / room).rglob("*.py"))
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_over_400_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_every_public_name_is_there_and_they_are_sorted() -> None:
    constants = [name for name in otel_gpu.__all__ if name.isupper()]
    classes = [name for name in otel_gpu.__all__ if name[0].isupper() and name not in constants]
    functions = [name for name in otel_gpu.__all__ if name.islower()]
    assert otel_gpu.__all__ == sorted(constants) + sorted(classes) + sorted(functions)
    assert all(getattr(otel_gpu, name) for name in otel_gpu.__all__)


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        otel_gpu.Nothing  # noqa: B018 - the look-up is the test
