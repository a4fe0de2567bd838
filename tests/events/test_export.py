"""Records arrive at a real receiver, over HTTP and gRPC; without one they are lines."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import grpc  # type: ignore[import-untyped]  # noqa: TID251 - the status codes of a real server; no types
import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber
from opentelemetry.sdk.resources import Resource

from otel_gpu.config import Otlp, Tls
from otel_gpu.events.export import SHUTDOWN_S, Outlet
from otel_gpu.events.record import Record, Severity
from otel_gpu.events.telling import told
from otel_gpu.model import ConfigError
from tests.events.box import NOW_NS, event, line, machine, said
from tests.events.receiver import GrpcServer, HttpServer, Receiver, attributes, plain

Protocol = Literal["http/protobuf", "grpc"]
PROTOCOLS: list[Protocol] = ["http/protobuf", "grpc"]
SCHEMA = "https://opentelemetry.io/schemas/1.44.0"
RESOURCE = Resource({"service.name": "otel-gpu", "host.name": "box"}, SCHEMA)
XID = told(line(31), machine())

Start = Callable[..., Outlet]


def wait_for_a_line(caplog: pytest.LogCaptureFixture) -> None:
    deadline_s = time.monotonic() + 10
    while not lines(caplog):
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    """Wait for what a shutdown left behind: older exporters cannot be broken off."""
    yield
    for thread in threading.enumerate():
        if thread.name.startswith(("OtelBatch", "otel-gpu-events")):
            thread.join(10)
            assert not thread.is_alive(), thread


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> Protocol:
    spoken: Protocol = request.param
    return spoken


@pytest.fixture
def receiver(protocol: Protocol) -> Iterator[Receiver]:
    receiver = Receiver()
    server = server_of(protocol, receiver)
    yield receiver
    server.close()


@pytest.fixture
def start(protocol: Protocol) -> Iterator[Start]:
    outlets: list[Outlet] = []

    def make(port: int, **options: Any) -> Outlet:
        part = Otlp(endpoint=f"http://127.0.0.1:{port}", protocol=protocol, **options)
        outlets.append(Outlet([part], RESOURCE, "1.2.3", delay_s=0.05))
        return outlets[-1]

    yield make
    for outlet in outlets:
        outlet.shutdown()


def server_of(protocol: Protocol, receiver: Receiver) -> HttpServer | GrpcServer:
    return GrpcServer(receiver) if protocol == "grpc" else HttpServer(receiver)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def sent(receiver: Receiver, outlet: Outlet, *records: Record) -> list[LogRecord]:
    """Write records, and end the outlet, which sends them at once."""
    outlet.write(records)
    outlet.shutdown()
    return receiver.records()


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [
        (record.levelno, record.getMessage())
        for record in caplog.records
        if record.name == "otel_gpu.events"
    ]


def test_a_record_arrives_whole(receiver: Receiver, start: Start) -> None:
    (record,) = sent(receiver, start(receiver.port), XID)

    assert record.time_unix_nano == NOW_NS
    assert record.observed_time_unix_nano > 1_600_000_000_000_000_000
    assert record.severity_number == SeverityNumber.SEVERITY_NUMBER_WARN
    assert record.severity_text == "WARN"
    assert record.event_name == "nvidia.gpu.xid"
    assert plain(record.body) == XID.body
    assert attributes(record.attributes) == said(XID)
    assert not record.trace_id


def test_records_are_the_nodes_and_the_scope_is_ours(receiver: Receiver, start: Start) -> None:
    sent(receiver, start(receiver.port), XID)
    (resource_logs,) = receiver.requests[0].resource_logs
    (scope_logs,) = resource_logs.scope_logs
    assert attributes(resource_logs.resource.attributes) == dict(RESOURCE.attributes)
    assert resource_logs.schema_url == SCHEMA
    assert (scope_logs.scope.name, scope_logs.scope.version) == ("otel-gpu", "1.2.3")


def test_path_headers_and_compression_are_the_parts(
    receiver: Receiver, start: Start, protocol: Protocol, tmp_path: Path
) -> None:
    path = tmp_path / "headers"
    path.write_text("Authorization: Bearer secret\n", encoding="utf-8")
    outlet = start(receiver.port, headers={"X-Tenant": "ml"}, headers_file=path)
    sent(receiver, outlet, XID)
    assert receiver.paths == ["grpc" if protocol == "grpc" else "/v1/logs"]
    assert receiver.headers[0]["x-tenant"] == "ml"
    assert receiver.headers[0]["authorization"] == "Bearer secret"
    if protocol != "grpc":
        assert receiver.headers[0]["content-encoding"] == "gzip"


def test_without_compression_it_arrives_too(receiver: Receiver, start: Start) -> None:
    assert len(sent(receiver, start(receiver.port, compression="none"), XID)) == 1


def test_a_record_is_sent_without_being_asked_for(receiver: Receiver, start: Start) -> None:
    start(receiver.port).write([XID])
    assert len(receiver.wait()) == 1


def test_a_shutdown_sends_what_waits_and_is_quick(receiver: Receiver, start: Start) -> None:
    outlet = start(receiver.port)
    outlet.write([XID] * 600)
    began_s = time.monotonic()
    outlet.shutdown()
    assert time.monotonic() - began_s < 2
    assert len(receiver.records()) == 600
    (stats,) = outlet.stats.values()
    assert (stats.delivered, stats.lost) == (600, 0)


def test_a_collector_that_is_down_for_a_while_gets_the_records_when_it_is_back(
    protocol: Protocol, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    receiver = Receiver(port=free_port())
    outlet = start(receiver.port, timeout=0.3)  # after which the exporter itself gives up
    outlet.write([XID])
    wait_for_a_line(caplog)

    server = server_of(protocol, receiver)
    try:
        assert len(receiver.wait()) == 1
    finally:
        server.close()
    (level, text), *more = lines(caplog)
    assert (level, more) == (logging.WARNING, [])
    assert text == f"{XID.body} Kernel: MMU Fault"
    assert "log records are not accepted: " in caplog.text


def test_what_a_collector_refuses_for_good_becomes_lines_and_is_counted(
    receiver: Receiver, start: Start, protocol: Protocol, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.statuses.append(grpc.StatusCode.UNIMPLEMENTED if protocol == "grpc" else 404)
    outlet = start(receiver.port)
    outlet.write([XID])
    outlet.shutdown()
    (stats,) = outlet.stats.values()
    assert (receiver.refused, stats.delivered, stats.lost) == (1, 0, 1)
    assert ("UNIMPLEMENTED" if protocol == "grpc" else "404") in stats.last_error
    assert [text for _, text in lines(caplog)] == [f"{XID.body} Kernel: MMU Fault"]


def seconds_to_shut_down(outlet: Outlet, timeout_s: float) -> float:
    outlet.write([XID])
    began_s = time.monotonic()
    outlet.shutdown(timeout_s)
    return time.monotonic() - began_s


def test_a_dead_collector_does_not_hold_up_a_shutdown_and_the_record_is_a_line(
    protocol: Protocol, caplog: pytest.LogCaptureFixture
) -> None:
    part = Otlp(endpoint=f"http://127.0.0.1:{free_port()}", protocol=protocol, timeout=3.0)
    outlet = Outlet([part], RESOURCE, "1.2.3")
    assert seconds_to_shut_down(outlet, 0.5) < 1.0
    assert SHUTDOWN_S <= 2.0
    wait_for_a_line(caplog)  # which older exporters, that cannot be broken off, delay
    (stats,) = outlet.stats.values()
    assert len(lines(caplog)) == 1
    assert stats.delivered == 0


def test_a_wait_for_a_collector_ends_at_once_with_the_agent(
    protocol: Protocol, caplog: pytest.LogCaptureFixture
) -> None:
    part = Otlp(endpoint=f"http://127.0.0.1:{free_port()}", protocol=protocol, timeout=0.3)
    outlet = Outlet([part], RESOURCE, "1.2.3", delay_s=0.05)
    outlet.write([XID])
    wait_for_a_line(caplog)
    began_s = time.monotonic()
    outlet.shutdown(5.0)
    assert time.monotonic() - began_s < 0.8
    (stats,) = outlet.stats.values()
    assert (stats.delivered, stats.lost) == (0, 1)


def test_a_collector_that_does_not_answer_does_not_hold_up_a_shutdown(protocol: Protocol) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        part = Otlp(endpoint=f"http://127.0.0.1:{port}", protocol=protocol, timeout=3.0)
        assert seconds_to_shut_down(Outlet([part], RESOURCE, "1.2.3"), 0.5) < 1.0


def test_several_targets_get_the_same(receiver: Receiver, protocol: Protocol) -> None:
    part = Otlp(endpoint=f"http://127.0.0.1:{receiver.port}", protocol=protocol)
    outlet = Outlet([part, part], RESOURCE, "1.2.3")
    outlet.write([XID])
    outlet.shutdown()
    assert len(receiver.records()) == 2


def test_without_a_target_each_record_is_a_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "otel_gpu.events")
    outlet = Outlet([], RESOURCE, "1.2.3")
    status = Record(time_ns=NOW_NS, severity=Severity.INFO, event_name="e", body="GPU x is ok")
    outlet.write([XID, told(event(79), machine()), told(event(62), machine()), status])
    assert [level for level, _ in lines(caplog)] == [
        logging.WARNING,
        logging.CRITICAL,
        logging.ERROR,
        logging.INFO,
    ]
    assert lines(caplog)[0][1] == f"{XID.body} Kernel: MMU Fault"
    assert lines(caplog)[3][1] == "GPU x is ok"
    assert not any(thread.name.startswith("OtelBatch") for thread in threading.enumerate())
    assert outlet.stats == {}
    outlet.shutdown()


def test_where_the_sdk_is_disabled_each_record_is_a_line(
    start: Start, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    start(free_port()).write([XID])
    assert len(lines(caplog)) == 1


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    lacking = tmp_path / "none.pem"
    part = Otlp(protocol="grpc", endpoint="https://collector:4317", tls=Tls(ca_file=lacking))
    with pytest.raises(ConfigError, match=r"pipeline\.otlp\.tls\.ca_file: .*none\.pem: No such"):
        Outlet([part], RESOURCE, "1.2.3")
