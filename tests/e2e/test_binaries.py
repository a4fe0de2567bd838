"""How the servers are built and kept, with a shell script in the place of go."""

from collections.abc import Callable
from pathlib import Path

import pytest

from .binaries import BuildError, GoMissingError, build, main

GOOD_GO = """\
version) echo "go version go1.99.0 linux/amd64" ;;
build) mkdir -p "$3"; touch "$3/collector" "$3/prometheus" "$3/promtool" ;;
"""
OLD_GO = 'version) echo "go version go1.20.1 linux/amd64" ;;'
FAILING_GO = """\
version) echo "go version go1.99.0 linux/amd64" ;;
build) echo "collector/main.go:1:1: expected package" >&2; exit 1 ;;
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OTEL_GPU_E2E_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def install_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a go on the PATH that knows the given commands."""
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    monkeypatch.setenv("PATH", str(go.parent), prepend=":")

    def install(commands: str) -> None:
        go.write_text(f'#!/bin/sh\ncase "$1" in\n{commands}\nesac\n')
        go.chmod(0o755)

    return install


def test_second_build_comes_from_the_cache(install_go: Callable[[str], None]) -> None:
    install_go(GOOD_GO)
    first, second = build(), build()

    assert first.build_seconds > 0
    assert second.build_seconds == 0
    assert first.collector.exists()
    assert (first.collector, first.promtool) == (second.collector, second.promtool)


def test_another_go_makes_another_build(install_go: Callable[[str], None]) -> None:
    install_go(GOOD_GO)
    first = build()
    install_go(GOOD_GO.replace("1.99.0", "1.99.1"))
    assert build().collector != first.collector


def test_failed_build_says_why_and_leaves_nothing(
    install_go: Callable[[str], None], cache: Path
) -> None:
    install_go(FAILING_GO)
    with pytest.raises(BuildError, match=r"go build failed with status 1: .* expected package"):
        build()
    assert [each.name for each in cache.iterdir()] == [".lock"]


def test_old_go_is_refused(install_go: Callable[[str], None]) -> None:
    install_go(OLD_GO)
    with pytest.raises(BuildError, match=r"needs go 1\.\d+ or newer; this is go version go1\.20"):
        build()


def test_missing_go_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GoMissingError):
        build()
    with pytest.raises(SystemExit, match=r"^e2e binaries: go is not on the PATH"):
        main()
