"""A machine and the agent on it, as a process: what is published while something is wrong."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import requests
from prometheus_client.parser import text_string_to_metric_families

from tests.fake_nvml.machine import FakeNvml
from tests.running import PATIENCE_S, command, free_port, page, wait_for

UUIDS = ("GPU-a", "GPU-b", "GPU-c")
STOP_S = 5.0
"""What a SIGTERM may take, whatever is wrong."""

Series = tuple[str, tuple[tuple[str, str], ...]]


class Node:
    """Three GPUs that draw 100, 101 and 102 W, unless it is a simulated box."""

    def __init__(self, folder: Path, backend: str, fake: FakeNvml | None) -> None:
        self._folder = folder
        self._backend = backend
        self._fake = fake
        self._running = False
        self.port = free_port()
        self.socket = folder / "control.sock"

    @property
    def fake(self) -> FakeNvml:
        """The driver's library."""
        assert self._fake
        return self._fake

    def furnish(self) -> None:
        """Put the GPUs in."""
        for index, uuid in enumerate(UUIDS):
            gpu = self.fake.gpu(index, uuid)
            gpu.field(186, 100_000 + 1000 * index, "uint")
            gpu.says("nvmlDeviceGetTotalEnergyConsumption", 5_000_000 + index)
            gpu.says("nvmlDeviceGetTemperature(0)", 40 + index)
        self.fake.write()

    def start(self, **settings: Any) -> Popen[str]:
        """Have the agent run, as soon as it serves."""
        part = {"prometheus": {"address": f"127.0.0.1:{self.port}"}}
        # Everything within a second, so that a test sees a change soon.
        sampling = {"fast": "500ms", "default": "500ms", "slow": "1s"}
        document = {
            "version": 1,
            "backend": self._backend,
            "sampling": sampling,
            "pipeline": [part],
            **settings,
        }
        file = self._folder / "agent.json"
        file.write_text(json.dumps(document), encoding="utf-8")
        os.environ["XDG_RUNTIME_DIR"] = str(self._folder)
        self.agent = Popen(command("run", "--config", str(file)), stderr=PIPE, text=True)
        self._running = True
        wait_for(lambda: page(self.port, "/readyz"), "agent that serves")
        return self.agent

    def end(self) -> None:
        """Have done with it."""
        if self._running:
            self.agent.kill()
            self.agent.communicate()
        os.environ.pop("XDG_RUNTIME_DIR", None)

    def samples(self) -> dict[Series, float]:
        """Give the page."""
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(page(self.port))
            for sample in family.samples
        }

    def by_gpu(self, name: str, **labels: str) -> dict[str, float]:
        """Give a metric's values by GPU; one sample a GPU."""
        wanted = labels.items()
        return {
            dict(its)["hw_id"]: value
            for (called, its), value in self.samples().items()
            if called == name and wanted <= dict(its).items()
        }

    def value(self, name: str, **labels: str) -> float | None:
        """Give one sample."""
        found = [
            value
            for (called, its), value in self.samples().items()
            if called == name and labels.items() <= dict(its).items()
        ]
        return found[0] if found else None

    def watts(self) -> dict[str, float]:
        """Give each GPU's power."""
        return self.by_gpu("hw_power_watts")

    def up(self) -> list[float]:
        """Give what `otel_gpu.device.up` says of each, by UUID."""
        return [value for _, value in sorted(self.by_gpu("otel_gpu_device_up").items())]

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for what the agent publishes."""
        wait_for(lambda: page(self.port, "/healthz") and condition(), what)

    def status(self) -> dict[str, Any]:
        """Give /debug/status."""
        found: dict[str, Any] = json.loads(page(self.port, "/debug/status"))
        return found

    def missing(self, uuid: str, metric: str) -> list[dict[str, Any]]:
        """Give why a GPU lacks a metric."""
        return [
            gap
            for gpu in self.status()["machine"]["gpus"]
            for gap in gpu["missing"]
            if gpu["identity"]["uuid"] == uuid and gap["metric"] == metric
        ]

    def is_well(self) -> bool:
        """Whether the agent says that it is alive and serves, whatever the GPUs do."""
        return page(self.port, "/healthz") == page(self.port, "/readyz") == "ok\n"

    def complaint(self) -> str:
        """Give why there are no fresh readings; "" when there are."""
        answer = requests.get(f"http://127.0.0.1:{self.port}/readyz?fresh=1", timeout=5)
        return "" if answer.ok else answer.text

    def workers(self) -> list[int]:
        """Give the process ids of the agent's children."""
        tasks = Path(f"/proc/{self.agent.pid}/task").iterdir()
        found = [(task / "children").read_text(encoding="ascii").split() for task in tasks]
        return [int(pid) for pids in found for pid in pids]

    def stopped(self) -> tuple[int, float, list[dict[str, Any]]]:
        """Send SIGTERM; give the exit status, the seconds it took, and the log."""
        begin_s = time.monotonic()
        self.agent.send_signal(signal.SIGTERM)
        code = self.agent.wait(PATIENCE_S)
        took_s = time.monotonic() - begin_s
        _, log = self.agent.communicate()
        self._running = False
        return code, took_s, [json.loads(line) for line in log.splitlines()]
