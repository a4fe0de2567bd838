"""The driver or its worker is ill, or is exchanged: the agent stays up, says what, and recovers."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.node import STOP_S, UUIDS, Node
from tests.running import otel_gpu

pytestmark = pytest.mark.thorough

INIT, ENERGY = "nvmlInitWithFlags", "hw_energy_joules_total"
UNBIND, BIND = 1, 2  # nvml.h, nvmlSystemEventTypeGpuDriverUnbind and -Bind


def served(node: Node) -> None:
    node.until(lambda: len(node.watts()) == len(UUIDS), "power of three")


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (9, "modprobe nvidia"),  # no kernel module, or no device files
        (4, "may not open /dev/nvidiactl"),
        (999, "restart the container"),  # the cgroup has taken the device files away: EPERM
    ],
)
def test_a_driver_that_does_not_start_is_waited_for_with_its_remedy(
    node: Node, code: int, remedy: str
) -> None:
    node.fake.system.fails(INIT, code)
    node.fake.write()
    node.start()
    node.until(lambda: node.value("otel_gpu_nvml_up") == 0, "driver that is not there")
    assert node.is_well()
    assert remedy in node.complaint()
    assert remedy in node.status()["driver"]["trouble"]
    node.fake.system.recovers(INIT)
    node.fake.write()
    served(node)
    assert node.value("otel_gpu_nvml_up") == 1
    _, _, log = node.stopped()
    assert [remedy in line["message"] for line in log if line["level"] == "error"] == [True]


def test_a_driver_that_is_upgraded_is_met_by_a_new_worker(node: Node) -> None:
    node.start()
    served(node)
    (before,) = node.workers()
    node.fake.driver("590.44.01")
    node.fake.system.fails(INIT, 18)
    node.fake.happens_to_driver(BIND, 0x3B00)
    for gpu in node.fake.gpus.values():
        gpu.says("nvmlDeviceGetTotalEnergyConsumption", 1_000)
    node.fake.write()
    node.until(lambda: node.value("otel_gpu_nvml_up") == 0, "mismatch")
    assert "reload the kernel module" in node.status()["driver"]["trouble"]
    assert node.watts() == {}
    assert node.is_well()
    node.fake.system.recovers(INIT)
    node.fake.write()
    served(node)
    assert before not in node.workers()
    restarts = node.value("otel_gpu_worker_restarts_total", otel_gpu_reason="mismatch")
    assert restarts is not None
    assert restarts >= 1
    assert node.status()["machine"]["driver_version"] == "590.44.01"
    assert set(node.by_gpu(ENERGY).values()) == {1.0}


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_a_worker_that_dies_is_replaced_and_counted(node: Node, number: signal.Signals) -> None:
    node.start()
    served(node)
    (before,) = node.workers()
    os.kill(before, number)
    node.until(
        lambda: node.value("otel_gpu_worker_restarts_total", otel_gpu_reason="died") == 1, "count"
    )
    node.until(lambda: node.workers() not in ([], [before]), "new worker")
    served(node)
    assert node.is_well()


def test_a_worker_that_is_stopped_counts_as_hung(node: Node) -> None:
    node.start()
    served(node)
    (before,) = node.workers()
    os.kill(before, signal.SIGSTOP)
    node.until(
        lambda: node.value("otel_gpu_worker_restarts_total", otel_gpu_reason="hung") == 1, "count"
    )
    assert node.is_well()
    node.until(lambda: before not in node.workers(), "end of the old one")


def test_a_start_that_hangs_keeps_the_agent_serving(node: Node) -> None:
    node.fake.system.hangs(INIT)
    node.fake.write()
    node.start()
    node.until(lambda: node.value("otel_gpu_nvml_up") == 0, "driver that is not there")
    assert node.is_well()


def test_a_gpu_that_leaves_the_driver_finds_nobody_in_its_way(node: Node) -> None:
    node.start()
    served(node)
    node.fake.happens_to_driver(UNBIND, 0x3B00)
    node.fake.write()
    node.until(lambda: not node.workers(), "end of the worker")
    assert "leaving the driver" in node.status()["driver"]["trouble"]
    del node.fake.gpus[2]
    node.fake.write()
    node.until(lambda: node.watts().keys() == {"GPU-a", "GPU-b"}, "those that stayed")
    assert node.up() == [1, 1, 0]


def test_quiesce_works_while_a_gpu_hangs(node: Node) -> None:
    node.start()
    served(node)
    node.fake.gpus[1].hangs("nvmlDeviceGetFieldValues")
    node.fake.write()
    node.until(lambda: node.by_gpu("otel_gpu_nvml_hung").keys() == {"GPU-b"}, "hang")
    asked = otel_gpu("quiesce")
    assert asked.returncode == 0, asked.stderr
    assert not node.workers()
    assert otel_gpu("resume").returncode == 0
    node.until(lambda: node.watts().keys() == {"GPU-a", "GPU-c"}, "the others")


def lost(node: Node) -> None:
    node.fake.gpus[1].loses()
    node.fake.write()
    node.until(lambda: node.up() == [1, 0, 1], "GPU that is down")


def hanging(node: Node) -> None:
    node.fake.gpus[1].hangs("nvmlDeviceGetFieldValues")
    node.fake.write()


def hanging_when_opened(node: Node) -> None:
    node.fake.gpus[1].hangs("nvmlDeviceGetHandleByIndex_v2")
    node.fake.happens_to_driver(BIND, 0x3B00)
    node.fake.write()


def not_there(node: Node) -> None:
    node.fake.system.fails(INIT, 9)
    node.fake.happens_to_driver(BIND, 0x3B00)
    node.fake.write()
    node.until(lambda: node.value("otel_gpu_nvml_up") == 0, "driver that is gone")


def stopped(node: Node) -> None:
    os.kill(node.workers()[0], signal.SIGSTOP)


def crashing(node: Node) -> None:
    os.kill(node.workers()[0], signal.SIGSEGV)


def released(node: Node) -> None:
    assert otel_gpu("quiesce").returncode == 0
    assert not node.workers()


def misconfigured(node: Node) -> None:
    Path(node.socket.parent / "agent.json").write_text("version: 7\n", encoding="utf-8")
    node.until(
        lambda: node.value("otel_gpu_config_reloads_total", otel_gpu_outcome="refused"), "refusal"
    )


@pytest.mark.parametrize(
    "fault",
    [
        lost,
        hanging,
        hanging_when_opened,
        not_there,
        stopped,
        crashing,
        released,
        misconfigured,
    ],
)
def test_sigterm_ends_it_within_5_s_during_any_fault(
    node: Node, fault: Callable[[Node], None]
) -> None:
    node.start()
    served(node)
    fault(node)
    code, took_s, _ = node.stopped()
    assert code == 0
    assert took_s < STOP_S
