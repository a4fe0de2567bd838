"""Builds the servers of the end-to-end tests, once, into a cache outside the tree.

`python -m tests.e2e.binaries` does it ahead of a test run: the first build takes minutes.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# The clouds' service discoveries are most of Prometheus's code, and no test here scrapes a cloud.
# Version control stays out, or each commit would be another build.
FLAGS = ("-trimpath", "-buildvcs=false", "-tags=remove_all_sd", "-ldflags=-s -w")


@dataclass(frozen=True, slots=True)
class Module:
    """What is built of a Go module."""

    folder: Path
    sources: tuple[str, ...]
    packages: tuple[str, ...]


HERE = Path(__file__).parent
TOOLS = Module(
    HERE / "tools",
    sources=("go.mod", "go.sum", "collector/main.go"),
    packages=(
        "./collector",
        "github.com/prometheus/prometheus/cmd/prometheus",
        "github.com/prometheus/prometheus/cmd/promtool",
    ),
)
# Built and kept apart: it takes seconds, and no change to it should cost the minutes of the others.
KUBELET = Module(HERE / "kubelet", sources=("go.mod", "go.sum", "main.go"), packages=(".",))


class BuildError(Exception):
    """The servers could not be built; the message is one line."""


class GoMissingError(BuildError):
    """There is no go on the PATH."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """Where the servers lie."""

    collector: Path
    prometheus: Path
    promtool: Path
    kubelet: Path
    build_seconds: float  # 0.0: they were in the cache


def build() -> Binaries:
    """Return the servers for this go and these sources, building them where the cache has none."""
    go = shutil.which("go")
    if go is None:
        raise GoMissingError("go is not on the PATH; the end-to-end tests build their servers")
    go_version = _run([go, "version"], TOOLS.folder).strip()
    for module in (TOOLS, KUBELET):
        _require_go(module, go_version)

    cache = _cache()
    cache.mkdir(parents=True, exist_ok=True)
    tools, kubelet = cache / _key(TOOLS, go_version), cache / _key(KUBELET, go_version)
    with _one_at_a_time(cache):
        seconds = _build_into(tools, TOOLS, go) + _build_into(kubelet, KUBELET, go)
    return Binaries(
        collector=tools / "collector",
        prometheus=tools / "prometheus",
        promtool=tools / "promtool",
        kubelet=kubelet / "kubelet",
        build_seconds=seconds,
    )


def _cache() -> Path:
    """Return the folder that holds one subfolder a build of a module."""
    if own := os.environ.get("OTEL_GPU_E2E_CACHE"):
        return Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "otel-gpu", "e2e")


def _key(module: Module, go_version: str) -> str:
    """Hash whatever the binaries depend on."""
    digest = hashlib.sha256("\0".join([go_version, *module.packages, *FLAGS]).encode())
    for source in module.sources:
        digest.update(b"\0" + (module.folder / source).read_bytes())
    return digest.hexdigest()[:16]


def _require_go(module: Module, go_version: str) -> None:
    """Refuse a go that is older than go.mod asks for, in clearer words than go's own."""
    asked = (module.folder / "go.mod").read_text()
    wanted = re.search(r"^go (\d+)\.(\d+)", asked, re.MULTILINE)
    found = re.search(r"go(\d+)\.(\d+)", go_version)
    if wanted is None or found is None:
        raise BuildError(f"cannot tell whether this go will do: {go_version}")
    if _numbers(found) < _numbers(wanted):
        name = f"tests/e2e/{module.folder.name}"
        raise BuildError(f"{name} needs {wanted[0]} or newer; this is {go_version}")


def _numbers(version: re.Match[str]) -> tuple[int, ...]:
    return tuple(map(int, version.groups()))


@contextmanager
def _one_at_a_time(cache: Path) -> Iterator[None]:
    """Let parallel test runs wait for one build instead of each doing its own."""
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_into(folder: Path, module: Module, go: str) -> float:
    """Build beside the folder and rename, so that a folder that exists is complete.

    Return the seconds that it took: none where the folder was there.
    """
    if folder.exists():
        return 0.0
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="building-") as scratch:
        built = Path(scratch, "bin")
        _run([go, "build", "-o", f"{built}/", *FLAGS, *module.packages], module.folder)
        built.rename(folder)
    return time.monotonic() - started


def _run(command: list[str], folder: Path) -> str:
    """Run go in the folder and return what it wrote."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        tail = " | ".join(done.stdout.strip().splitlines()[-5:])
        raise BuildError(f"go {command[1]} failed with status {done.returncode}: {tail}")
    return done.stdout


def main() -> None:
    """Build, and say how long it took."""
    try:
        seconds = build().build_seconds
    except BuildError as error:
        sys.exit(f"e2e binaries: {error}")
    took = f"built in {seconds / 60:.1f} min" if seconds else "cached"
    sys.stdout.write(f"e2e binaries: {took}\n")


if __name__ == "__main__":
    main()
