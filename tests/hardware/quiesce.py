"""`otel-gpu quiesce` and `resume` on real GPUs: what is open, and whether any counter steps.

    python -m tests.hardware.quiesce [SECONDS]

Prints Markdown: which of the driver's device files the agent and its worker have open at each
stage, and each counter's growth over the pause beside its growth before it. Exits with 1 when a
file stays open, a counter falls, begins anew, or grows over the pause more than it could have.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from otel_gpu.worker.holding import held
from tests.receiver import HttpReceiver, Receiver, metrics, points, value
from tests.running import free_port, otel_gpu, page, running, wait_for

PAUSE_S = 10.0
STEP = 1.5
"""How many times its rate before a counter may have grown over the pause: loads are not even."""

Key = tuple[str, str, tuple[tuple[str, str], ...]]


class Total(NamedTuple):
    """A counter's value, when it was, and since when it counts (Unix ns)."""

    value: float
    time_ns: int
    start_ns: int


def totals(receiver: Receiver) -> dict[Key, Total]:
    """Collect the counters of the GPUs from the last push."""
    request = receiver.requests[-1]
    return {
        (resource.get("hw.id", ""), metric.name, attributes(point)): Total(
            float(value(point)), point.time_unix_nano, point.start_time_unix_nano
        )
        for resource, metric in metrics(request)
        if metric.HasField("sum") and metric.sum.is_monotonic
        if metric.name.startswith(("hw.", "nvidia."))
        for point in points(metric)
    }


def attributes(point: object) -> tuple[tuple[str, str], ...]:
    return tuple(
        sorted((kv.key, kv.value.string_value) for kv in point.attributes)  # type: ignore[attr-defined] # protobuf's
    )


def family(pid: int) -> list[int]:
    """Give the agent's process and all below it."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            found += map(int, task.read_text(encoding="ascii").split())
    return found


def stage(name: str, pid: int) -> bool:
    """Print what is open; whether anything is."""
    files = held(family(pid))
    shown = "; ".join(f"{pid}: {' '.join(names)}" for pid, names in files.items()) or "none"
    print(f"| {name} | {len(family(pid))} | {shown} |")
    return bool(files)


def compared(
    first: Mapping[Key, Total], before: Mapping[Key, Total], after: Mapping[Key, Total]
) -> list[str]:
    """Print each counter's growth; give what is wrong with it."""
    faults = []
    print("\n| counter | series | growth a second before | over the pause | fell | began anew |")
    print("|---|---|---|---|---|---|")
    for name in sorted({name for _, name, _ in before}):
        keys = [key for key in before if key[1] == name]
        gone = [key for key in keys if key not in after]
        rates = [rate(first[key], before[key]) for key in keys if key in first]
        paused = [rate(before[key], after[key]) for key in keys if key in after]
        fell = sum(after[key].value < before[key].value for key in keys if key in after)
        anew = sum(after[key].start_ns != before[key].start_ns for key in keys if key in after)
        most, then = max(rates, default=0.0), max(paused, default=0.0)
        print(f"| `{name}` | {len(keys)} | {most:.6g} | {then:.6g} | {fell} | {anew} |")
        stepped = most > 0 and then > STEP * most
        if gone or fell or anew or stepped:
            faults.append(f"{name}: gone {len(gone)}, fell {fell}, anew {anew}, step {stepped}")
    return faults


def rate(earlier: Total, later: Total) -> float:
    passed_s = (later.time_ns - earlier.time_ns) / 1e9
    return (later.value - earlier.value) / passed_s if passed_s else 0.0


def up(port: int) -> float:
    for one in text_string_to_metric_families(page(port)):
        if one.name == "otel_gpu_nvml_up":
            return one.samples[0].value
    return -1.0


def main(pause_s: float) -> int:
    receiver = Receiver()
    server = HttpReceiver(receiver)
    port = free_port()
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        config = Path(folder) / "agent.json"
        otlp = {"endpoint": f"http://127.0.0.1:{receiver.http_port}", "interval": "1s"}
        pipeline = [{"prometheus": {"address": f"127.0.0.1:{port}"}}, {"otlp": otlp}]
        settings = {"version": 1, "metrics": {"profile": "full"}, "pipeline": pipeline}
        config.write_text(json.dumps(settings), encoding="utf-8")
        with running("run", "--config", str(config), "--require-gpu") as agent:
            wait_for(lambda: page(port, "/readyz?fresh=1"), "fresh readings")
            driver = json.loads(page(port, "/debug/status"))["machine"]["driver_version"]
            print(f"{datetime.now(UTC):%Y-%m-%d}, driver {driver}\n")
            print("| stage | processes | device files open |\n|---|---|---|")
            time.sleep(12)  # for rates of what is read every 5 s
            first = totals(receiver)
            time.sleep(12)
            stage("running", agent.pid)
            before = totals(receiver)
            begin_s = time.monotonic()
            asked = otel_gpu("quiesce")
            took_s = time.monotonic() - begin_s
            if asked.returncode or stage("after `otel-gpu quiesce`", agent.pid):
                faults.append(f"quiesce: {asked.stdout}{asked.stderr}")
            time.sleep(pause_s)
            nvml_up = up(port)
            if stage(f"{pause_s:g} s later", agent.pid):
                faults.append("a device file was opened in the pause")
            begin_s = time.monotonic()
            resumed = otel_gpu("resume")
            wait_for(lambda: page(port, "/readyz?fresh=1"), "fresh readings")
            back_s = time.monotonic() - begin_s
            stage("after `otel-gpu resume`", agent.pid)
            time.sleep(7)
            faults += compared(first, before, totals(receiver))
    server.close()
    print(f"\nquiesce took {took_s:.2f} s and said: {asked.stdout.strip()}")
    print(f"In the pause otel_gpu.nvml.up was {nvml_up:g}. resume: fresh readings after", end=" ")
    print(f"{back_s:.2f} s ({resumed.stdout.strip()}).")
    print("\n".join(faults) if faults else "No counter fell, began anew, or stepped.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else PAUSE_S))
