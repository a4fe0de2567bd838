"""OTLP arrives at a real receiver, over HTTP and over gRPC, with what was collected."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]  # noqa: TID251 - the status codes of a real server; no types
import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric

from otel_gpu.config import Otlp
from otel_gpu.model import ConfigError, ResourceKey
from otel_gpu.pipeline import Context
from otel_gpu.pipeline.otlp import OtlpReader, build
from tests.pipeline.box import POINTS, START_NS, Box, reading
from tests.receiver import Certificate, GrpcReceiver, HttpReceiver, Receiver, metrics, points, value

PROTOCOLS = ["http/protobuf", "grpc"]

Start = Callable[..., tuple[OtlpReader, Box]]


@pytest.fixture
def start() -> Iterator[Start]:
    boxes: list[Box] = []

    def make(**options: Any) -> tuple[OtlpReader, Box]:
        reader = build(Otlp(**{"interval": 3600.0, **options}), Context(node="box"))
        box = Box([reader])
        boxes.append(box)
        return reader, box

    yield make
    for box in boxes:
        box.provider.shutdown(timeout_millis=2_000)


@pytest.fixture
def black_hole() -> Iterator[str]:
    """Listen, and never answer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def endpoint(receiver: Receiver, protocol: str) -> str:
    port = receiver.grpc_port if protocol == "grpc" else receiver.http_port
    return f"http://127.0.0.1:{port}"


def series(receiver: Receiver) -> dict[tuple[str, str, frozenset[tuple[str, str]]], Any]:
    """Give the number points of the last request by metric, GPU of the Resource, attributes."""
    return {
        (
            metric.name,
            resource.get("hw.id", ""),
            frozenset((kv.key, kv.value.string_value) for kv in point.attributes),
        ): value(point)
        for resource, metric in metrics(receiver.requests[-1])
        if not metric.HasField("histogram")
        for point in points(metric)
    }


def by_name(receiver: Receiver, name: str) -> list[Metric]:
    """Give the metrics of that name in the last request, by GPU of the Resource."""
    found = [
        (resource.get("hw.id", ""), metric)
        for resource, metric in metrics(receiver.requests[-1])
        if metric.name == name
    ]
    return [metric for _, metric in sorted(found, key=lambda pair: pair[0])]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_gpu_arrives_under_its_own_resource(
    receiver: Receiver, start: Start, protocol: str
) -> None:
    reader, _ = start(endpoint=endpoint(receiver, protocol), protocol=protocol)

    assert reader.force_flush()

    sent = {
        (resource.get("hw.id"), resource.get("k8s.pod.name"), metric.name)
        for resource, metric in metrics(receiver.requests[-1])
    }
    assert sent == {
        ("GPU-0", "train-0", "hw.power"),
        ("GPU-0", "train-0", "hw.gpu.utilization"),
        ("GPU-0", "train-0", "hw.gpu.memory.usage"),
        ("GPU-0", None, "hw.energy"),
        ("GPU-0", None, "hw.status"),
        ("GPU-1", None, "hw.power"),
        ("GPU-1", None, "hw.gpu.utilization"),
        ("GPU-1", None, "hw.energy"),
        (None, None, "otel_gpu.nvml.up"),
        (None, None, "otel_gpu.sweep.duration"),
    }
    held = {("hw.id", "GPU-0"), ("hw.name", "nvidia0")}
    held |= {("k8s.namespace.name", "ml"), ("k8s.pod.name", "train-0")}
    assert series(receiver)["hw.power", "GPU-0", frozenset(held)] == 412.5
    assert series(receiver)["hw.energy", "GPU-1", frozenset({("hw.id", "GPU-1")})] == 9
    (mine, other) = by_name(receiver, "hw.energy")
    assert (mine.unit, mine.sum.is_monotonic) == ("J", True)
    assert points(mine)[0].start_time_unix_nano == START_NS
    assert points(other)[0].start_time_unix_nano == 0
    (histogram,) = by_name(receiver, "otel_gpu.sweep.duration")
    assert list(histogram.histogram.data_points[0].bucket_counts) == [1, 1, 1, 1]
    assert reader.stats.exported == POINTS


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_series_that_vanished_is_not_sent_any_more(
    receiver: Receiver, start: Start, protocol: str
) -> None:
    reader, box = start(endpoint=endpoint(receiver, protocol), protocol=protocol)
    assert reader.force_flush()
    assert len(by_name(receiver, "hw.power")) == 2

    del box.power[0]
    assert reader.force_flush()

    (power,) = by_name(receiver, "hw.power")
    assert value(points(power)[0]) == 71.0


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_headers_file_and_compression_are_sent(
    receiver: Receiver, start: Start, tmp_path: Path, protocol: str, compression: str
) -> None:
    (tmp_path / "headers").write_text("Authorization: Bearer t0ken\n", encoding="utf-8")
    reader, _ = start(
        endpoint=endpoint(receiver, protocol),
        protocol=protocol,
        compression=compression,
        headers={"X-Scope": "team-a", "authorization": "Bearer old"},
        headers_file=tmp_path / "headers",
    )

    assert reader.force_flush()

    (headers,) = receiver.headers
    assert (headers["authorization"], headers["x-scope"]) == ("Bearer t0ken", "team-a")
    if protocol != "grpc":
        assert headers.get("content-encoding") == {"gzip": "gzip", "none": None}[compression]
        assert receiver.paths == ["/v1/metrics"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_receiver_that_wants_certificates_is_given_ours_if_we_trust_its_own(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    known, other = (Certificate.make(tmp_path, name) for name in ("known", "other"))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(other.certificate))  # ca_file wins
    receiver = Receiver()
    kind = GrpcReceiver if protocol == "grpc" else HttpReceiver
    server = kind(receiver, known)
    url = endpoint(receiver, protocol).replace("http:", "https:")
    ours = {"cert_file": known.certificate, "key_file": known.key}

    def flushed(**tls: Path) -> tuple[bool, OtlpReader]:
        reader, _ = start(endpoint=url, protocol=protocol, timeout=1.0, tls=tls)
        return reader.force_flush(), reader

    assert flushed(ca_file=known.certificate, **ours)[0]
    refused = [
        flushed(ca_file=other.certificate, **ours),
        flushed(**ours),
        flushed(ca_file=known.certificate),
    ]
    server.close()

    assert [done for done, _ in refused] == [False] * 3
    assert len(receiver.requests) == 1
    assert "certificate" in refused[0][1].stats.last_error.lower()


def test_pushes_come_by_themselves(receiver: Receiver, start: Start) -> None:
    start(endpoint=endpoint(receiver, "http/protobuf"), interval=0.1)

    times = [
        points(metric)[0].time_unix_nano
        for request in receiver.wait(3)
        for _, metric in metrics(request)
        if metric.name == "otel_gpu.nvml.up"
    ]

    assert times == sorted(set(times))  # each is a collection of its own


def test_delta_sends_growth_and_never_a_lifetime_total(receiver: Receiver, start: Start) -> None:
    reader, box = start(endpoint=endpoint(receiver, "http/protobuf"), temporality="delta")
    assert reader.force_flush()
    assert by_name(receiver, "hw.energy") == []
    box.energy[0] = reading(123459.789, ResourceKey("GPU-0"), START_NS)
    box.sweep.record(0.5, {"phase": "fast"})
    assert reader.force_flush()

    delta = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
    (grown, idle) = by_name(receiver, "hw.energy")
    assert {grown.sum.aggregation_temporality, idle.sum.aggregation_temporality} == {delta}
    assert [value(points(metric)[0]) for metric in (grown, idle)] == [3.0, 0]
    (histogram,) = by_name(receiver, "otel_gpu.sweep.duration")
    assert histogram.histogram.data_points[0].count == 1
    (memory,) = by_name(receiver, "hw.gpu.memory.usage")  # which may fall, so it stays a total
    assert value(points(memory)[0]) == 40 << 30


def test_two_targets_have_each_their_own_growth(receiver: Receiver, start: Start) -> None:
    url = endpoint(receiver, "http/protobuf")
    first, box = start(endpoint=url, temporality="delta")
    second = build(Otlp(endpoint=url, interval=3600.0, temporality="delta"), Context())
    box.provider.add_metric_reader(second)

    def growth(reader: OtlpReader, total: float) -> list[float]:
        box.energy[0] = reading(total, ResourceKey("GPU-0"), START_NS)
        assert reader.force_flush()
        return [value(points(metric)[0]) for metric in by_name(receiver, "hw.energy")[:1]]

    seen = [growth(first, 200_000), growth(first, 200_010), growth(second, 200_030)]
    seen += [growth(second, 200_035), growth(first, 200_040)]

    assert seen == [[], [10], [], [5], [30]]


@pytest.mark.parametrize(
    ("protocol", "answer", "kind"),
    [
        ("http/protobuf", 401, "401"),
        ("http/protobuf", 302, "302"),  # which the official exporter takes for a success
        ("grpc", grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED"),
    ],
)
def test_a_refusal_for_good_is_counted_by_its_status_and_told_once(
    receiver: Receiver,
    start: Start,
    caplog: pytest.LogCaptureFixture,
    *,
    protocol: str,
    answer: Any,
    kind: str,
) -> None:
    receiver.statuses.extend([answer] * 2)
    caplog.set_level(logging.INFO)
    reader, _ = start(endpoint=endpoint(receiver, protocol), protocol=protocol)

    assert [reader.force_flush() for _ in range(3)] == [False, False, True]

    assert reader.stats.failed == {kind: 2 * POINTS}
    assert reader.stats.exported == POINTS
    said = [record.getMessage() for record in caplog.records]
    url = endpoint(receiver, protocol)
    assert said[0].startswith(f"otlp {url}: {POINTS} points were refused for good: ")
    assert said[1:] == [f"otlp {url}: accepted again, after 2 failures"]


@pytest.mark.parametrize(
    ("protocol", "answer"), [("http/protobuf", 503), ("grpc", grpc.StatusCode.UNAVAILABLE)]
)
def test_what_a_target_cannot_take_now_arrives_later_with_its_own_time(
    receiver: Receiver, start: Start, protocol: str, answer: Any
) -> None:
    receiver.statuses.extend([answer] * 2)
    reader, _ = start(endpoint=endpoint(receiver, protocol), protocol=protocol)

    assert [reader.force_flush() for _ in range(3)] == [False, False, True]

    first, second, third, *later = (
        points(metric)[0].time_unix_nano
        for request in receiver.requests
        for _, metric in metrics(request)
        if metric.name == "otel_gpu.nvml.up"
    )
    assert first == second == third  # two failed attempts, then it was taken
    assert sorted(later) == later
    assert len(later) == 2
    assert reader.stats.exported == 3 * POINTS
    assert reader.stats.failed == {}


def test_a_queue_on_disk_is_sent_by_the_next_agent(
    receiver: Receiver, start: Start, tmp_path: Path, closed_port: str
) -> None:
    queue = {"directory": tmp_path / "queue"}
    reader, box = start(endpoint=closed_port, queue=queue)
    assert not reader.force_flush()
    assert not reader.force_flush()
    box.provider.shutdown(timeout_millis=2_000)
    assert receiver.requests == []

    following, _ = start(endpoint=endpoint(receiver, "http/protobuf"), queue=queue)
    assert following.force_flush()

    # Twice on purpose, once as the first agent ended, and what the second one collected itself.
    assert len(receiver.requests) == 4
    assert following.stats.exported == 4 * POINTS


def test_two_agents_cannot_share_a_directory(
    start: Start, tmp_path: Path, closed_port: str
) -> None:
    start(endpoint=closed_port, queue={"directory": tmp_path})

    with pytest.raises(ConfigError, match=str(tmp_path)):
        start(endpoint=closed_port, queue={"directory": tmp_path})


# A dead collector


def test_dead_collectors_hold_up_a_shutdown_for_less_than_two_seconds(
    receiver: Receiver, black_hole: str, closed_port: str
) -> None:
    targets = [(url, protocol) for url in (black_hole, closed_port) for protocol in PROTOCOLS]
    targets.append((endpoint(receiver, "http/protobuf"), "http/protobuf"))
    readers = [
        build(Otlp(endpoint=url, protocol=protocol, interval=3600.0, timeout=4.0), Context())  # type: ignore[arg-type]
        for url, protocol in targets
    ]
    box = Box(readers)

    began_s = time.monotonic()
    box.provider.shutdown()

    assert time.monotonic() - began_s < 2.0
    assert len(receiver.requests) == 1  # the living one got its last export meanwhile


def test_credentials_in_an_endpoint_show_neither_in_the_log_nor_in_the_status(
    start: Start, closed_port: str, caplog: pytest.LogCaptureFixture
) -> None:
    url = closed_port.replace("//", "//user:s3cret@") + "/?key=s3cret"
    reader, _ = start(endpoint=url, timeout=0.3)

    assert not reader.force_flush()

    assert "otlp http://***@127.0.0.1" in caplog.text
    assert "refused" in reader.stats.last_error
    assert reader.stats.inflight == POINTS
    assert "s3cret" not in caplog.text + reader.stats.last_error
