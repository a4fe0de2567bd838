"""Counters and rates against work whose size is known. Needs PyTorch, two GPUs and nvcc.

    python -m tests.hardware.known_work

- NVLink: a copy of known size from GPU 0 to GPU 1; the byte counters must equal it within 0.1 %.
- PCIe: a copy from host memory; `hw.gpu.io` must be 5 to 11 % above it, the other way under 8 %.
- A bf16 matmul: tensor 0.88 to 0.94, SM 0.91 to 0.96, DRAM 0.13 to 0.19, in two agents at once.
- A kernel that writes to a bad address: Xid 31 as a counter and a log record within 2 s.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from prometheus_client.parser import text_string_to_metric_families

from tests.running import command, free_port, page, wait_for

GIB = 2**30
KERNEL = """
__global__ void write(int *address) { *address = 1; }
int main() {
  write<<<1, 1>>>((int *)0x7fffdead0000ULL);
  return cudaDeviceSynchronize() != cudaSuccess;
}
"""

Values = dict[tuple[str, ...], float]


@contextmanager
def agent(log: Path) -> Iterator[int]:
    """Run the agent as a user would, with everything on; give its port."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "agent.json"
        settings = {
            "version": 1,
            "metrics": {"profile": "full"},
            "pipeline": [{"prometheus": {"address": f"127.0.0.1:{port}"}}],
        }
        config.write_text(json.dumps(settings), encoding="utf-8")
        with log.open("w", encoding="utf-8") as sink:
            process = subprocess.Popen(command("run", "--config", str(config)), stderr=sink)
            try:
                wait_for(lambda: page(port, "/readyz?fresh=1"), "fresh readings")
                yield port
            finally:
                process.terminate()
                process.wait(10)


def values(port: int, name: str, *labels: str) -> Values:
    """Scrape one metric; keyed by GPU's name and the labels asked for."""
    return {
        (sample.labels.get("hw_name", ""), *(sample.labels.get(one, "") for one in labels)): (
            sample.value
        )
        for family in text_string_to_metric_families(page(port))
        for sample in family.samples
        if sample.name == name
    }


def moved(port: int, name: str, work: Callable[[], None], settle_s: float) -> Values:
    """Give how much a counter grew by a piece of work."""
    time.sleep(settle_s)
    before = values(port, name, "network_io_direction")
    work()
    torch.cuda.synchronize()
    time.sleep(settle_s)
    after = values(port, name, "network_io_direction")
    return {key: after[key] - before[key] for key in after}


def nvlink(port: int, size_gib: int = 100) -> bool:
    source = torch.empty(GIB, dtype=torch.uint8, device="cuda:0")
    target = torch.empty(GIB, dtype=torch.uint8, device="cuda:1")

    def work() -> None:
        for _ in range(size_gib):
            target.copy_(source)

    grown = moved(port, "nvidia_gpu_nvlink_io_bytes_total", work, 6.0)
    size = size_gib * GIB
    sent, got = grown["nvidia0", "transmit"] / size, grown["nvidia1", "receive"] / size
    print(f"NVLink, {size_gib} GiB from 0 to 1: sent {sent:.5f}, received {got:.5f} of it")
    return abs(sent - 1) < 1e-3 and abs(got - 1) < 1e-3


def pcie(port: int, size_gib: int = 40) -> bool:
    host = torch.empty(GIB, dtype=torch.uint8, pin_memory=True)
    target = torch.empty(GIB, dtype=torch.uint8, device="cuda:0")

    def work() -> None:
        for _ in range(size_gib):
            target.copy_(host)

    grown = moved(port, "hw_gpu_io_bytes_total", work, 2.5)
    size = size_gib * GIB
    into, out = grown["nvidia0", "receive"] / size, grown["nvidia0", "transmit"] / size
    print(f"PCIe, {size_gib} GiB from host to 0: received {into:.4f}, sent {out:.4f} of it")
    return 1.05 <= into <= 1.11 and out < 0.08


def matmul(ports: tuple[int, int], seconds: float = 12.0) -> bool:
    matrix = torch.randn(8192, 8192, device="cuda:0", dtype=torch.bfloat16)
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        torch.mm(matrix, matrix)
        torch.cuda.synchronize()
    good = True
    for port in ports:
        tensor = values(port, "nvidia_gpu_pipe_utilization_ratio", "nvidia_gpu_pipe")
        found = {
            "tensor": tensor["nvidia0", "tensor"],
            "sm": values(port, "nvidia_gpu_sm_utilization_ratio")["nvidia0",],
            "dram": values(port, "nvidia_gpu_dram_utilization_ratio")["nvidia0",],
        }
        print(f"matmul, agent at {port}: {found}")
        good = good and (
            0.88 <= found["tensor"] <= 0.94
            and 0.91 <= found["sm"] <= 0.96
            and 0.13 <= found["dram"] <= 0.19
        )
    return good


def xid(port: int, log: Path) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "xid.cu", Path(folder) / "xid"
        source.write_text(KERNEL, encoding="utf-8")
        subprocess.run(["nvcc", "-arch=sm_90", "-o", str(program), str(source)], check=True)
        process = subprocess.Popen([str(program)])
        process.wait()
        begin_s = time.monotonic()
    counted_s = told_s = None
    while time.monotonic() < begin_s + 5 and (counted_s is None or told_s is None):
        errors = values(port, "nvidia_gpu_xid_errors_total", "nvidia_gpu_xid_class")
        if counted_s is None and errors.get(("nvidia0", "application")):
            counted_s = time.monotonic() - begin_s
        if told_s is None and "Xid 31" in log.read_text(encoding="utf-8"):
            told_s = time.monotonic() - begin_s
        time.sleep(0.05)
    lines = [line for line in log.read_text(encoding="utf-8").splitlines() if "Xid 31" in line]
    with_pid = any(str(process.pid) in line for line in lines)
    print(f"Xid 31: counted after {counted_s} s, told after {told_s} s, pid named: {with_pid}")
    print("\n".join(lines))
    within = counted_s is not None and told_s is not None and max(counted_s, told_s) <= 2.0
    return within and with_pid


def main() -> int:
    folder = Path(tempfile.mkdtemp())
    log = folder / "first.log"
    with agent(log) as port, agent(folder / "second.log") as other:
        results = {
            "nvlink": nvlink(port),
            "pcie": pcie(port),
            "matmul": matmul((port, other)),
            "xid": xid(port, log),
        }
    print(results)
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
