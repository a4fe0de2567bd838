"""A body of ours travels under the official exporters' address, and what came of it is told."""

from __future__ import annotations

import gzip
import os
import socket
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import grpc  # type: ignore[import-untyped]  # noqa: TID251 - the status codes of a real server; no types
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsPartialSuccess,
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import ResourceMetrics

from otel_gpu.config import Otlp, Tls
from otel_gpu.model import ConfigError
from otel_gpu.pipeline.outcome import Later, Outcome, Refused, Taken
from otel_gpu.pipeline.transport import Renewed, Transport, connect, files
from tests.receiver import Answer, Certificate, GrpcReceiver, HttpReceiver, Receiver
from tests.running import wait_for

REQUEST = ExportMetricsServiceRequest(resource_metrics=[ResourceMetrics(schema_url="here")])
BODY = gzip.compress(REQUEST.SerializeToString())

PROTOCOLS = ["http/protobuf", "grpc"]

Connect = Callable[..., Transport]


@pytest.fixture
def transport(receiver: Receiver) -> Iterator[Connect]:
    """Make transports to the receiver, or to another endpoint, closed after the test."""
    made: list[Transport] = []

    def make(protocol: str = "http/protobuf", **options: Any) -> Transport:
        port = receiver.grpc_port if protocol == "grpc" else receiver.http_port
        given = {"endpoint": f"http://127.0.0.1:{port}", "protocol": protocol, "timeout": 2.0}
        asked = Otlp(**{**given, **options})
        transport = Renewed(lambda: connect(asked), files(asked))
        made.append(transport)
        return transport

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_the_body_arrives_as_it_was(
    receiver: Receiver, transport: Connect, protocol: str, compression: str
) -> None:
    sender = transport(protocol, compression=compression)

    assert [sender.send(BODY), sender.send(BODY)] == [Taken(), Taken()]

    assert receiver.requests == [REQUEST, REQUEST]
    assert "OTel" in receiver.headers[0]["user-agent"]  # as the official exporter introduces itself


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_partial_success_is_told(receiver: Receiver, transport: Connect, protocol: str) -> None:
    partial = ExportMetricsPartialSuccess(rejected_data_points=2, error_message="too old")
    response = ExportMetricsServiceResponse(partial_success=partial)
    receiver.statuses.append(Answer(body=response.SerializeToString()))

    assert transport(protocol).send(BODY) == Taken(2, "too old")


@pytest.mark.parametrize(
    ("protocol", "answer", "outcome"),
    [
        ("http/protobuf", Answer(503, {"Retry-After": "7"}), Later("503", "", 7)),
        ("http/protobuf", Answer(401), Refused("401", "")),
        ("grpc", Answer(grpc.StatusCode.ABORTED), Later("ABORTED", "")),
        ("grpc", Answer(grpc.StatusCode.UNAUTHENTICATED), Refused("UNAUTHENTICATED", "")),
    ],
)
def test_a_refusal_is_one_attempt_and_the_server_says_whether_it_may_pass(
    receiver: Receiver, transport: Connect, protocol: str, answer: Answer, outcome: Any
) -> None:
    receiver.statuses.append(answer)

    told: Any = transport(protocol).send(BODY)

    assert len(receiver.requests) == 1
    assert told._replace(text="") == outcome
    assert told.kind in told.text


def test_a_redirect_is_not_followed(receiver: Receiver, transport: Connect) -> None:
    elsewhere = f"http://127.0.0.1:{receiver.http_port}/elsewhere"
    receiver.statuses.append(Answer(302, {"Location": elsewhere}))

    outcome = transport().send(BODY)

    assert isinstance(outcome, Refused)
    assert elsewhere in outcome.text
    assert receiver.paths == ["/v1/metrics"]


@pytest.mark.parametrize(
    ("protocol", "kind"), [("http/protobuf", "ConnectionError"), ("grpc", "UNAVAILABLE")]
)
def test_nobody_there_may_pass(transport: Connect, protocol: str, kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    outcome = transport(protocol, endpoint=f"http://127.0.0.1:{port}").send(BODY)

    assert isinstance(outcome, Later)
    assert outcome.kind == kind
    assert "refused" in outcome.text


@pytest.mark.parametrize(
    ("protocol", "kind"), [("http/protobuf", "ReadTimeout"), ("grpc", "DEADLINE_EXCEEDED")]
)
def test_a_target_that_does_not_answer_is_left_after_the_timeout(
    transport: Connect, protocol: str, kind: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        outcome = transport(protocol, endpoint=url, timeout=0.2).send(BODY)

    assert isinstance(outcome, Later)
    assert outcome.kind in {kind, "UNAVAILABLE"}


def test_grpc_finds_a_server_that_came_back(receiver: Receiver, transport: Connect) -> None:
    first = GrpcReceiver(receiver)
    port = receiver.grpc_port
    sender = transport("grpc")
    assert sender.send(BODY) == Taken()

    first.close()
    assert isinstance(sender.send(BODY), Later)
    second = GrpcReceiver(receiver, port=port)
    came_back = wait_for(lambda: sender.send(BODY) == Taken(), "the server that came back")
    second.close()

    assert came_back  # the first may come too early: gRPC waits between its attempts to connect


# What is read again


def outcomes(sender: Transport, change: Callable[[], object]) -> tuple[Outcome, Outcome]:
    before = sender.send(BODY)
    change()
    return before, sender.send(BODY)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_token_that_is_rotated_needs_no_restart(
    receiver: Receiver, transport: Connect, tmp_path: Path, protocol: str
) -> None:
    """As Kubernetes rotates: the name is a symbolic link, whose folder is exchanged."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "headers").write_text(f"Authorization: {name}\n", encoding="utf-8")
    current, following = tmp_path / "current", tmp_path / "following"
    current.symlink_to("old")
    following.symlink_to("new")
    sender = transport(protocol, headers_file=current / "headers")

    assert outcomes(sender, lambda: following.replace(current)) == (Taken(), Taken())

    assert [headers["authorization"] for headers in receiver.headers] == ["old", "new"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_certificates_that_are_rotated_need_no_restart(
    transport: Connect, tmp_path: Path, protocol: str
) -> None:
    trusted, stranger = (Certificate.make(tmp_path, name) for name in ("trusted", "stranger"))
    for name, path in (("cert", stranger.certificate), ("key", stranger.key)):
        (tmp_path / name).write_bytes(path.read_bytes())
    tls = Tls(ca_file=trusted.certificate, cert_file=tmp_path / "cert", key_file=tmp_path / "key")
    receiver = Receiver()
    server: Any = (GrpcReceiver if protocol == "grpc" else HttpReceiver)(receiver, trusted)
    port = receiver.grpc_port if protocol == "grpc" else receiver.http_port
    sender = transport(protocol, endpoint=f"https://127.0.0.1:{port}", tls=tls)

    def rotate() -> None:
        (tmp_path / "cert").write_bytes(trusted.certificate.read_bytes())
        (tmp_path / "key").write_bytes(trusted.key.read_bytes())

    before, after = outcomes(sender, rotate)
    server.close()

    assert isinstance(before, Later)
    assert after == Taken()


def test_a_server_that_is_not_trusted_is_told_from_one_that_is_gone(
    transport: Connect, tmp_path: Path
) -> None:
    server_side, other = (Certificate.make(tmp_path, name) for name in ("server", "other"))
    receiver = Receiver()
    server = HttpReceiver(receiver, server_side)
    url = f"https://127.0.0.1:{receiver.http_port}"

    outcome = transport(endpoint=url, tls=Tls(ca_file=other.certificate)).send(BODY)
    server.close()

    assert isinstance(outcome, Later)
    assert outcome.kind == "SSLError"
    assert "certificate verify failed" in outcome.text


def test_a_file_that_becomes_unreadable_leaves_the_transport_as_it_was(
    receiver: Receiver,
    transport: Connect,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    headers = tmp_path / "headers"
    headers.write_text("Authorization: first\n", encoding="utf-8")
    sender = transport(headers_file=headers)

    for _ in range(2):
        assert outcomes(sender, lambda: headers.unlink(missing_ok=True)) == (Taken(), Taken())

    assert {each["authorization"] for each in receiver.headers} == {"first"}
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith(f"pipeline.otlp.headers_file: {headers}")
    assert said.endswith("what was read before is used")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("key", ["ca_file", "cert_file"])
def test_a_certificate_file_that_cannot_be_read_is_named_at_the_start(
    transport: Connect, tmp_path: Path, protocol: str, key: str
) -> None:
    named = {key: tmp_path / "nowhere.pem"}
    if key == "cert_file":
        named["key_file"] = tmp_path / "nowhere.key"

    with pytest.raises(ConfigError, match=rf"^pipeline.otlp.tls.{key}: .*: No such file"):
        transport(protocol, endpoint="https://c:4318", tls=Tls(**named))


# Proxies


@pytest.fixture
def proxy() -> Iterator[tuple[str, list[str]]]:
    """A proxy for plain HTTP, as its clients see one; it keeps the URLs that it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_proxy_of_the_environment_is_used_but_for_what_it_excludes(
    receiver: Receiver,
    transport: Connect,
    proxy: tuple[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, asked = proxy
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, url)
    for name in [name for name in os.environ if name.lower() == "no_proxy"]:
        monkeypatch.delenv(name)

    assert transport(endpoint="http://collector.example:4318").send(BODY) == Taken()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert transport().send(BODY) == Taken()

    assert asked == ["http://collector.example:4318/v1/metrics"]
    assert len(receiver.requests) == 1
