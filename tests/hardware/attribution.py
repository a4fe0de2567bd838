"""Energy and time by owner on a real GPU: one job alone, then two that share it.

    python -m tests.hardware.attribution [SECONDS]

Needs PyTorch, root and a cgroup file system that can be written: the two loads run in cgroups that
are called as Slurm calls them, one of them with half the duty of the other. Prints Markdown; exits
with 1 when accounts and the board's own counter differ by more than 0.1 %, or an owner is missing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.running import free_port, otel_gpu, page, running, wait_for

MOST = 0.001
TAIL_S = 11.0  # two readings of what is read every 5 s
ROOTS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup/pids"))
GROUP = "otel-gpu-test/slurmstepd.scope/job_{}/step_0"
LOAD = """
import sys, time, torch
x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
busy_s, idle_s, for_s = map(float, sys.argv[2:])
end_s, products = time.monotonic() + for_s, 0
while time.monotonic() < end_s:
    until_s = time.monotonic() + busy_s
    while time.monotonic() < until_s:
        torch.mm(x, x)
        torch.cuda.synchronize()
        products += 1
    with open(sys.argv[1], "w") as file:
        file.write(str(products))
    time.sleep(idle_s)
"""

Series = Mapping[tuple[tuple[str, str], ...], float]


def samples(port: int, name: str) -> Series:
    return {
        tuple(sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page(port))
        for sample in family.samples
        if sample.name == name
    }


def board(port: int) -> float:
    return sum(samples(port, "hw_energy_joules_total").values())


def accounts(port: int, name: str = "nvidia_gpu_workload_energy_joules_total") -> dict[str, float]:
    """Give what each job, and nobody, used, by job and method."""
    return {
        f"{dict(its).get('slurm_job_id', '-')} {dict(its)['nvidia_gpu_attribution_method']}": value
        for its, value in samples(port, name).items()
    }


def owners(port: int) -> set[str]:
    return {dict(its).get("slurm_job_id", "-") for its in samples(port, "nvidia_gpu_allocation")}


def cgroup(job: str) -> Path | None:
    """Make a job's cgroup where one can be made."""
    for root in ROOTS:
        try:
            path = root / GROUP.format(job)
            path.mkdir(parents=True, exist_ok=True)
            if (path / "cgroup.procs").exists():
                return path
        except OSError:
            continue
    return None


def products(job: str) -> int:
    """Give how many products of matrices, all of one size, a job's load has made."""
    return int(Path(f"/tmp/products-{job}").read_text(encoding="ascii") or 0)


def load(seconds: float, job: str, idle_s: float) -> subprocess.Popen[bytes]:
    path = cgroup(job)

    def enter() -> None:
        if path:
            (path / "cgroup.procs").write_text("0", encoding="ascii")

    words = [sys.executable, "-c", LOAD, f"/tmp/products-{job}", "0.1", str(idle_s), str(seconds)]
    return subprocess.Popen(words, preexec_fn=enter)  # noqa: PLW1509 - no thread is running yet


def phase(port: int, name: str, jobs: Mapping[str, float], seconds: float) -> list[str]:
    """Run a load, and compare accounts with the board's counter from before it to after it."""
    time.sleep(TAIL_S)
    loads = [load(seconds + 60, job, idle_s) for job, idle_s in jobs.items()]
    wait_for(lambda: set(jobs) <= owners(port), "owners")
    time.sleep(TAIL_S)
    before_j, before = board(port), accounts(port)
    made = {job: products(job) for job in jobs}
    holders = sorted(owners(port))
    time.sleep(seconds)
    after_j, after = board(port), accounts(port)
    made = {job: products(job) - made[job] for job in jobs}
    for one in loads:
        one.kill()
        one.wait()
    grown_j = after_j - before_j
    charged = {key: after[key] - before.get(key, 0.0) for key in after}
    total_j = sum(charged.values())
    difference = abs(total_j - grown_j) / grown_j
    told = ", ".join(f"{key}: {value:,.0f} J" for key, value in sorted(charged.items()) if value)
    work = ", ".join(f"{job}: {count / sum(made.values()):.1%}" for job, count in made.items())
    print(f"| {name} | {work} | {grown_j:,.0f} | {told} | {difference:.5%} |")
    faults = [] if difference <= MOST else [f"{name}: differs by {difference:.3%}"]
    if not set(jobs) <= set(holders):
        faults.append(f"{name}: owners are {holders}")
    return faults


def main(seconds: float) -> int:
    port = free_port()
    begun_s = time.monotonic()
    checked = otel_gpu("check")
    took_s = time.monotonic() - begun_s
    print(
        f"`otel-gpu check` took {took_s:.2f} s: {checked.stdout.strip()} ({checked.returncode})\n"
    )
    faults = [] if checked.returncode == 0 else ["check: not healthy"]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        config = Path(folder) / "agent.json"
        part = {"prometheus": {"address": f"127.0.0.1:{port}"}}
        settings = {
            "version": 1,
            "attribution": {"slurm": "on"},
            "metrics": {"enable": ["nvidia.gpu.process.*"]},
            "pipeline": [part],
        }
        config.write_text(json.dumps(settings), encoding="utf-8")
        with running("run", "--config", str(config), "--require-gpu"):
            wait_for(lambda: page(port, "/readyz?fresh=1"), "fresh readings")
            status = json.loads(page(port, "/debug/status"))
            print(f"driver {status['machine']['driver_version']}, {status['attribution']}\n")
            print(
                "| load | products made | hw.energy grew, J | workload.energy grew | difference |"
            )
            print("|---|---|---|---|---|")
            faults += phase(port, "one job", {"101": 0.0}, seconds)
            faults += phase(port, "two jobs, one at half duty", {"201": 0.0, "202": 0.1}, seconds)
            held = accounts(port, "nvidia_gpu_workload_time_seconds_total")
            print(f"\ntime held: { {key: round(value, 1) for key, value in held.items()} }")
            (sums,) = samples(port, "otel_gpu_sweep_duration_seconds_sum").values()
            (count,) = samples(port, "otel_gpu_sweep_duration_seconds_count").values()
            print(f"a sweep took {sums / count * 1000:.2f} ms on average, of {count:.0f}")
    print("\n".join(faults) if faults else "\nEvery account adds up.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 45.0))
