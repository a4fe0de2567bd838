"""The agent as a process: it serves, pushes, ends in time, and outlives a missing driver."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.receiver import GrpcReceiver, HttpReceiver, Receiver, metrics, points, value
from tests.running import free_port, otel_gpu, page, running, wait_for

STOP_S = 5.0


def written(path: Path, **settings: object) -> str:
    file = path / "agent.json"
    file.write_text(json.dumps({"version": 1, **settings}), encoding="utf-8")  # JSON is YAML too
    return str(file)


def prometheus(port: int) -> dict[str, object]:
    return {"prometheus": {"address": f"127.0.0.1:{port}"}}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    both = Receiver()
    servers = HttpReceiver(both), GrpcReceiver(both)
    yield both
    for server in servers:
        server.close()


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_pull_and_push_carry_equal_values(
    tmp_path: Path, receiver: Receiver, protocol: str
) -> None:
    """The recording's only answers repeat, so that every read gives the same."""
    recording = tmp_path / "box.json"
    made = otel_gpu(
        "record", str(recording), "--sweeps", "1", "--backend", "simulated:h200x8,gpus=2"
    )
    assert made.returncode == 0, made.stderr
    port = free_port()
    target = receiver.http_port if protocol == "http/protobuf" else receiver.grpc_port
    config = written(
        tmp_path,
        backend=f"recorded:{recording}",
        metrics={"profile": "full", "enable": ["nvidia.gpu.pcie.throughput"]},
        pipeline=[
            prometheus(port),
            {
                "otlp": {
                    "endpoint": f"http://127.0.0.1:{target}",
                    "protocol": protocol,
                    "interval": "500ms",
                }
            },
        ],
    )
    with running("run", "--config", config):
        text = wait_for(lambda: page(port, "/readyz?fresh=1") and page(port), "page")
        requests = receiver.wait(3)
    pulled = sorted(number for (name, _), number in samples(text).items() if is_gpu(name))
    pushed = sorted(
        float(value(point))
        for _, metric in metrics(requests[-1])
        if is_gpu(metric.name)
        for point in points(metric)
    )
    assert pulled == pushed
    assert len(pulled) > 100


def test_receive_and_transmit_are_told_apart_in_both(tmp_path: Path, receiver: Receiver) -> None:
    port = free_port()
    config = written(
        tmp_path,
        backend="simulated:h200x8,gpus=1",
        metrics={"enable": ["nvidia.gpu.pcie.throughput"]},
        pipeline=[
            prometheus(port),
            {"otlp": {"endpoint": f"http://127.0.0.1:{receiver.http_port}", "interval": "1s"}},
        ],
    )
    with running("run", "--config", config):
        text = wait_for(lambda: page(port, "/readyz?fresh=1") and page(port), "page")
        request = receiver.wait(2)[-1]
    pulled = {
        dict(labels)["network_io_direction"]: number
        for (name, labels), number in samples(text).items()
        if name == "nvidia_gpu_pcie_throughput_bytes_per_second"
    }
    pushed = {
        kv.value.string_value: value(point)
        for _, metric in metrics(request)
        if metric.name == "nvidia.gpu.pcie.throughput"
        for point in points(metric)
        for kv in point.attributes
        if kv.key == "network.io.direction"
    }
    for directions in (pulled, pushed):
        assert set(directions) == {"receive", "transmit"}
        assert directions["receive"] != directions["transmit"]


def is_gpu(name: str) -> bool:
    return name.startswith(("hw_", "hw.", "nvidia_", "nvidia."))


def test_each_gpu_is_a_resource_of_its_own(tmp_path: Path, receiver: Receiver) -> None:
    config = written(
        tmp_path,
        backend="simulated:h200x8",
        pipeline=[
            {"otlp": {"endpoint": f"http://127.0.0.1:{receiver.http_port}", "interval": "500ms"}}
        ],
    )
    count = 1
    with running("run", "--config", config):
        while len((request := receiver.wait(count)[-1]).resource_metrics) < 9:
            count += 1  # pushed before the first sweep was done
    found = {
        tuple(
            next((kv.value.string_value for kv in one.resource.attributes if kv.key == key), "")
            for key in ("hw.id", "service.instance.id")
        )
        for one in request.resource_metrics
    }
    uuids, instances = zip(*found, strict=True)
    assert len([uuid for uuid in uuids if uuid]) == 8
    assert len(set(instances)) == 9  # the GPUs and the node


def test_an_owner_is_on_activity_rows_and_in_a_resource_of_its_own(
    tmp_path: Path, receiver: Receiver
) -> None:
    owners = tmp_path / "owners.yaml"
    owners.write_text(
        "- gpu: 0\n"
        "  attributes: {k8s.namespace.name: research, k8s.pod.name: train-0}\n"
        "  resource: {k8s.pod.uid: 7f6c}\n",
        encoding="utf-8",
    )
    config = written(
        tmp_path,
        backend="simulated:h200x8,gpus=2",
        attribution={"static": str(owners)},
        pipeline=[
            {"otlp": {"endpoint": f"http://127.0.0.1:{receiver.http_port}", "interval": "500ms"}}
        ],
    )
    with running("run", "--config", config):
        request = receiver.wait(2)[-1]
    held = {
        metric.name
        for resource, metric in metrics(request)
        if resource.get("k8s.pod.uid") == "7f6c"
    }
    allocations = [
        {kv.key for kv in point.attributes}
        for _, metric in metrics(request)
        if metric.name == "nvidia.gpu.allocation"
        for point in points(metric)
    ]
    assert {"hw.gpu.utilization", "hw.power", "hw.gpu.memory.usage"} <= held
    assert not held & {"hw.energy", "hw.temperature", "nvidia.gpu.info"}
    assert len(allocations) == 1
    assert {"hw.id", "k8s.pod.name", "nvidia.gpu.shared"} <= allocations[0]


@pytest.mark.parametrize("dead", ["refuses", "black hole"])
def test_sigterm_ends_it_with_0_within_5_s_even_with_a_dead_collector(
    tmp_path: Path, dead: str
) -> None:
    port = free_port()
    with socket.socket() as hole:
        hole.bind(("127.0.0.1", 0))
        if dead == "black hole":
            hole.listen()  # accepts, and never answers
        address = f"http://127.0.0.1:{hole.getsockname()[1]}"
        config = written(
            tmp_path,
            backend="simulated",
            pipeline=[prometheus(port), {"otlp": {"endpoint": address, "interval": "1s"}}],
        )
        with running("run", "--config", config) as agent:
            wait_for(lambda: page(port, "/readyz"), "readiness")
            begin_s = time.monotonic()
            agent.send_signal(signal.SIGTERM)
            status = agent.wait(STOP_S + 5)
    assert status == 0
    assert time.monotonic() - begin_s < STOP_S


def test_sigterm_ends_it_within_5_s_while_the_driver_hangs(tmp_path: Path) -> None:
    port = free_port()
    config = written(
        tmp_path,
        backend="simulated:h200x8,gpus=2,fault=hang:nvmlDeviceGetTemperatureV@GPU1@1s",
        pipeline=[prometheus(port)],
    )
    with running("run", "--config", config) as agent:
        wait_for(lambda: page(port, "/readyz"), "readiness")
        begin_s = time.monotonic()
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(STOP_S + 5) == 0
    assert time.monotonic() - begin_s < STOP_S


def test_without_a_driver_it_stays_says_so_once_and_recovers(tmp_path: Path) -> None:
    port = free_port()
    config = written(
        tmp_path, backend="simulated:t4,fault=absent@0s-3s", pipeline=[prometheus(port)]
    )
    with running("run", "--config", config) as agent:
        first = wait_for(lambda: page(port), "page")
        assert samples(first)[("otel_gpu_nvml_up", frozenset())] == 0
        assert "not ready" in page(port, "/readyz?fresh=1") or not page(port, "/readyz?fresh=1")
        later = wait_for(
            lambda: samples(page(port)).get(("otel_gpu_nvml_up", frozenset())), "driver"
        )
        assert later == 1
        wait_for(lambda: "hw_power_watts" in page(port), "power")
        agent.send_signal(signal.SIGTERM)
        _, log = agent.communicate(timeout=STOP_S)
    errors = [line for line in log.splitlines() if json.loads(line)["level"] == "error"]
    assert len(errors) == 1


def test_require_gpu_exits_with_3_where_there_is_none(tmp_path: Path) -> None:
    config = written(
        tmp_path, backend="simulated:t4,fault=absent", pipeline=[prometheus(free_port())]
    )
    ended = otel_gpu("run", "--config", config, "--require-gpu")
    assert ended.returncode == 3
    assert "nvidia" in ended.stderr


def test_an_option_that_is_not_there_yet_is_refused(tmp_path: Path) -> None:
    part = {"prometheus": {"names": ["dcgm-4.8.2"]}}
    ended = otel_gpu("run", "--config", written(tmp_path, pipeline=[part]))
    assert ended.returncode == 2
    assert ended.stderr.startswith("pipeline[0].prometheus.names: ")


def test_the_agent_never_imports_pynvml(tmp_path: Path) -> None:
    """The worker does; the agent would not survive a driver that hangs or is replaced."""
    port = free_port()
    config = written(tmp_path, backend="nvml", pipeline=[prometheus(port)])
    with running("run", "--config", config) as agent:
        wait_for(lambda: page(port, "/readyz"), "readiness")
        maps = Path(f"/proc/{agent.pid}/maps").read_text(encoding="utf-8")
    assert "libnvidia-ml" not in maps
    code = "import sys, otel_gpu.agent, otel_gpu.cli; sys.exit('pynvml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
