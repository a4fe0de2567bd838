"""What the agent loses with each right that it is not given, on a real GPU.

    python tests/hardware/least_privilege.py > table.md

Reads every GPU once as each profile, with every metric that there is, and prints what a profile has
and root does not lack. Changes no setting. Needs root, setpriv and unshare; a profile that this
machine does not allow is left out, with the reason. Takes half a minute; exits with 1 when root
itself read nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE)]  # so that it also runs as a file

from tests.security.confinement import Confinement, obstacle  # noqa: E402 - found by the line above

LIMIT_S = 120
KERNEL_LOG = "from otel_gpu.events.kernel_log import KernelLog; print(KernelLog().reason)"
ROOT = "root"


@dataclass
class Seen:
    """What one profile read: points by metric, over all GPUs, and why others are missing."""

    points: dict[str, int] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    driver: str = ""
    gpus: tuple[str, ...] = ()
    kernel_log: str = ""
    trouble: str = ""


def profiles(stage: Path) -> dict[str, Confinement | None]:
    return {
        ROOT: None,
        "nobody": Confinement(stage / "a"),
        "nobody, read-only root": Confinement(stage / "b", read_only=True),
        "nobody, read-only root, default system calls": Confinement(
            stage / "c", read_only=True, filtered=True
        ),
        "nobody, own process ids": Confinement(stage / "d", own_pids=True),
    }


def ran(words: list[str], confinement: Confinement | None) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "OTEL_GPU_METRICS__PROFILE": "full",
        "OTEL_GPU_METRICS__ENABLE": "[nvidia.gpu.process.*]",
        "PYTHONPATH": str(SOURCE),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, *words]
    return subprocess.run(
        confinement.command(command) if confinement else command,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env=environment,
        cwd="/",
        check=False,
    )


def look(backend: str, confinement: Confinement | None) -> Seen:
    """Read everything once."""
    words = ["-m", "otel_gpu", "once", "--format", "json", "--backend", backend]
    try:
        done = ran(words, confinement)
        log = ran(["-c", KERNEL_LOG], confinement).stdout.strip()
        document = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, json.JSONDecodeError, OSError) as error:
        return Seen(trouble=f"{type(error).__name__}: {error}"[:200])
    return Seen(
        points=counted(document),
        missing=reasons(document),
        driver=document["driver_version"],
        gpus=tuple(gpu["identity"].get("model", "?") for gpu in document["gpus"]),
        kernel_log=log or "is read",
        trouble=document["trouble"] or "",
    )


def counted(document: Mapping[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for gpu in document["gpus"]:
        for name, metric in gpu["metrics"].items():
            found[name] = found.get(name, 0) + len(metric["points"])
    return found


def reasons(document: Mapping[str, Any]) -> dict[str, str]:
    return {
        lack["metric"]: f"{lack['reason']}: {lack['detail']}"
        for gpu in document["gpus"]
        for lack in gpu["missing"]
    }


def steady(first: Seen, last: Seen) -> dict[str, int]:
    """Give what root read both before and after the others: what comes and goes proves nothing."""
    return {
        name: min(count, last.points[name])
        for name, count in first.points.items()
        if name in last.points
    }


def lost(wanted: Mapping[str, int], seen: Seen) -> Iterator[str]:
    """Say what is missing, wholly or in part, and why."""
    for name, count in sorted(wanted.items()):
        if seen.points.get(name, 0) < count:
            why = seen.missing.get(name, "no reason is given").replace("|", "\\|")
            yield f"`{name}` ({seen.points.get(name, 0)} of {count} points): {why}"


def rows(wanted: Mapping[str, int], seen: Mapping[str, Seen]) -> Iterator[str]:
    yield "| profile | metrics | points | kernel log | lost against root |"
    yield "|---|---|---|---|---|"
    for name, one in seen.items():
        if one.trouble:
            yield f"| {name} | | | | was not shown: {' '.join(one.trouble.split())} |"
            continue
        gone = "<br>".join(lost(wanted, one)) or "nothing"
        points = sum(one.points.values())
        yield f"| {name} | {len(one.points)} | {points} | {one.kernel_log} | {gone} |"


def parameters() -> Iterable[str]:
    """Give the module's parameters that decide about rights."""
    path = Path("/proc/driver/nvidia/params")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    wanted = ("RmProfilingAdminOnly", "DeviceFileMode", "DeviceFileUID", "ModifyDeviceFiles")
    return [line for line in lines if line.startswith(wanted)]


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--backend", default="nvml", help="nvml; simulated to try the script")
    backend = options.parse_args().backend
    seen: dict[str, Seen] = {}
    with tempfile.TemporaryDirectory(prefix="otel-gpu-") as folder:
        Path(folder).chmod(0o755)
        for name, confinement in profiles(Path(folder)).items():
            reason = obstacle(confinement) if confinement else ""
            seen[name] = Seen(trouble=reason) if reason else look(backend, confinement)
        again = look(backend, None)
    first = seen[ROOT]
    print(f"{datetime.now(UTC):%Y-%m-%d}, driver {first.driver or 'none'}: ", end="")
    print(f"{', '.join(first.gpus) or 'no GPU'}; {'; '.join(parameters()) or 'no parameters'}\n")
    print("\n".join(rows(steady(first, again), seen)))
    return int(not first.points)


if __name__ == "__main__":
    sys.exit(main())
