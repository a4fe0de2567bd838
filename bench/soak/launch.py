"""The agent's own command line, whose worker opens the soak's box.

    python -m bench.soak.launch BACKEND COUNTS TRACES [otel-gpu's words]

A configuration cannot name a class for the agent to load. So the name is put in here, where the
agent makes its supervisor; nothing else is changed. COUNTS is a file: each SIGUSR2 adds to it how
many blocks Python's own allocator has given away, which is what the agent's objects take, whatever
the C library keeps back. TRACES is one too, or - for none: each SIGUSR1 adds to it what is
allocated beyond what was at the first, as `tracemalloc` tells it.
"""

from __future__ import annotations

import gc
import signal
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from otel_gpu import agent, cli
from otel_gpu.worker.supervisor import Supervisor

FRAMES, LINES = 1, 40  # more frames say more, and make the agent slower still


class Traces:
    """Compares what is allocated with what was when it was first called."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._first: tracemalloc.Snapshot | None = None
        tracemalloc.start(FRAMES)

    def __call__(self, *_signal: object) -> None:
        gc.collect()
        own = tracemalloc.Filter(False, tracemalloc.__file__)  # noqa: FBT003 - it takes no keyword
        now = tracemalloc.take_snapshot().filter_traces([own])
        if self._first is None:
            self._first = now
            return
        grown = now.compare_to(self._first, "traceback")[:LINES]
        with self._file.open("a", encoding="utf-8") as file:
            current, _ = tracemalloc.get_traced_memory()
            file.write(f"\n=== {current} bytes are allocated\n")
            for more in grown:
                file.write(f"{more.size_diff:+} bytes, {more.count_diff:+} blocks\n")
                file.writelines(f"{line}\n" for line in more.traceback.format())


def counting(file: Path) -> Callable[..., None]:
    """Make what writes down how many blocks are in use, without what only waits for collection."""

    def count(*_signal: object) -> None:
        gc.collect()
        with file.open("a", encoding="utf-8") as counts:
            counts.write(f"{sys.getallocatedblocks()}\n")

    return count


def main() -> None:
    backend, counts, traces, *words = sys.argv[1:]
    signal.signal(signal.SIGUSR2, counting(Path(counts)))
    if traces != "-":
        signal.signal(signal.SIGUSR1, Traces(Path(traces)))

    def supervisor(_configured: str) -> Supervisor:
        return Supervisor(backend)

    vars(agent)["Supervisor"] = supervisor
    sys.argv = ["otel-gpu", *words]
    cli.main()


if __name__ == "__main__":
    main()
