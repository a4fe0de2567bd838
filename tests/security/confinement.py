"""A process with little: another user, no capabilities, no way to get any, a root to read only.

What a container runtime does to a pod with a strict security context, done with setpriv(1),
unshare(1) and mount(8), so that it can be shown wherever tests run as root.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

NOBODY = 65534
SOURCE = Path(__file__).parents[2]
FILTER = Path(__file__).with_name("syscalls.py")
OPEN = 0o001  # others may pass through a directory

DROPPED = (
    f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups --bounding-set=-all --inh-caps=-all"
    " --no-new-privs"
)


@dataclass(frozen=True)
class Confinement:
    """What a process is kept from. `writable` is what it may write to where its root is read-only.

    `stage` is an empty directory of the test's, for mounts that only the process sees.
    """

    stage: Path
    read_only: bool = False
    own_pids: bool = False
    filtered: bool = False
    writable: tuple[Path, ...] = ()

    def command(self, words: Sequence[str]) -> list[str]:
        """Give the command that runs another one confined; the process id stays the same."""
        script = "\n".join(("set -e", *self._mounts(), f'exec {DROPPED} -- "$@"'))
        filtering = [sys.executable, "-I", "-S", str(FILTER)] if self.filtered else []
        fork = ["--pid", "--fork", "--kill-child", "--mount-proc"] if self.own_pids else []
        namespace = ["unshare", "--mount", "--propagation", "private", *fork]
        return [*namespace, "sh", "-c", script, "sh", *filtering, *words]

    def _mounts(self) -> Iterator[str]:
        for number, (closed, needed) in enumerate(sorted(closed_folders().items())):
            stage = self.stage / f"stage-{number}"
            yield from _shown_through(closed, needed, stage)
        if self.read_only:
            for path in self.writable:
                yield f"mount --bind {_quoted(path)} {_quoted(path)}"
            kept = "|".join(map(_quoted, self.writable)) or "''"
            # A mount that is hidden under another cannot be named, and need not be.
            yield (
                "while read -r _ at _; do case $at in " + kept + ") ;; "
                '*) mount -o remount,bind,ro "$at" 2>/dev/null || :;; esac; '
                "done < /proc/self/mounts"
            )


def _shown_through(closed: Path, needed: Sequence[Path], stage: Path) -> Iterator[str]:
    """Put an open folder in the place of a closed one, with nothing in it but what is needed."""
    for number, path in enumerate(needed):
        at = stage / str(number)
        yield f"mkdir -p {_quoted(at)}"
        yield f"mount --bind {_quoted(path)} {_quoted(at)}"
    yield f"mount -t tmpfs -o mode=755 tmpfs {_quoted(closed)}"
    for number, path in enumerate(needed):
        yield f"mkdir -p {_quoted(path)}"
        yield f"mount --bind {_quoted(stage / str(number))} {_quoted(path)}"


def closed_folders() -> dict[Path, list[Path]]:
    """Find folders that keep others out of the interpreter, its packages or this source tree."""
    found: dict[Path, list[Path]] = {}
    for path in dict.fromkeys(Path(one).resolve() for one in (sys.base_prefix, sys.prefix, SOURCE)):
        closed = [one for one in path.parents if not one.stat().st_mode & OPEN]
        if closed:
            found.setdefault(closed[-1], []).append(path)
    return found


def obstacle(confinement: Confinement) -> str:
    """Say why this machine does not let us confine a process; "" where it does."""
    lacking = [name for name in ("setpriv", "unshare", "mount") if not shutil.which(name)]
    if lacking:
        return f"there is no {', '.join(lacking)} here"
    if os.geteuid():
        return "only root can become somebody else"
    probe = confinement.command([sys.executable, "-c", "import otel_gpu"])
    done = subprocess.run(probe, capture_output=True, text=True, cwd="/", check=False)
    return "" if done.returncode == 0 else f"it is not allowed here: {done.stderr.strip()[-300:]}"


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
