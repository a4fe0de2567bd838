"""A real OTLP receiver for tests: HTTP and gRPC servers on loopback that keep what they get."""

from __future__ import annotations

import gzip
import shutil
import ssl
import subprocess
import time
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Condition, Thread
from typing import Any

import grpc  # type: ignore[import-untyped]  # noqa: TID251 - this end speaks gRPC too; no types
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, NumberDataPoint

PATIENCE_S = 10.0


@dataclass(frozen=True)
class Answer:
    """What to answer: an HTTP status or a gRPC code, headers or trailers, a body."""

    status: Any = 200
    headers: Mapping[str, str | bytes] = field(default_factory=dict)
    body: bytes = b""


@dataclass
class Receiver:
    """What both servers got, and what they are to answer.

    `statuses` are the answers to the next requests, one each, as HTTP statuses, gRPC codes or whole
    answers; where there is none left, the answer is a success.
    """

    requests: list[ExportMetricsServiceRequest] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    statuses: deque[Any] = field(default_factory=deque)
    http_port: int = 0
    grpc_port: int = 0
    _changed: Condition = field(default_factory=Condition)

    def wait(self, count: int) -> list[ExportMetricsServiceRequest]:
        """Wait until so many requests came."""
        deadline_s = time.monotonic() + PATIENCE_S
        with self._changed:
            while len(self.requests) < count:
                left_s = deadline_s - time.monotonic()
                assert left_s > 0, f"{len(self.requests)} of {count} requests in {PATIENCE_S} s"
                self._changed.wait(left_s)
            return list(self.requests)

    def keep(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Keep a request; give what to answer."""
        request = ExportMetricsServiceRequest.FromString(body)
        with self._changed:
            self.requests.append(request)
            self.headers.append(headers)
            self.paths.append(path)
            self._changed.notify_all()
            answer = self.statuses.popleft() if self.statuses else Answer()
            return answer if isinstance(answer, Answer) else Answer(answer)


def metrics(request: ExportMetricsServiceRequest) -> Iterator[tuple[dict[str, str], Metric]]:
    """Give every metric of a request with the attributes of its Resource."""
    for resource_metrics in request.resource_metrics:
        resource = {kv.key: kv.value.string_value for kv in resource_metrics.resource.attributes}
        for scope_metrics in resource_metrics.scope_metrics:
            for metric in scope_metrics.metrics:
                yield resource, metric


def points(metric: Metric) -> list[NumberDataPoint]:
    """Give the number points of a gauge or sum."""
    data = metric.gauge if metric.HasField("gauge") else metric.sum
    return list(data.data_points)


def value(point: NumberDataPoint) -> int | float:
    """Give the value of a point, as the kind of number that was sent."""
    return point.as_int if point.HasField("as_int") else point.as_double


@dataclass(frozen=True)
class Certificate:
    """A certificate that is its own authority, in PEM files: for a server and its clients alike."""

    certificate: Path
    key: Path

    @classmethod
    def make(cls, folder: Path, name: str) -> Certificate:
        """Make one for 127.0.0.1."""
        made = cls(folder / f"{name}.pem", folder / f"{name}.key")
        words = (
            f"req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -subj /CN={name}"
        )
        extension = "subjectAltName=IP:127.0.0.1"
        files = ["-addext", extension, "-keyout", str(made.key), "-out", str(made.certificate)]
        openssl = shutil.which("openssl")
        if openssl is None:
            pytest.skip("openssl, which makes the certificates, is not installed")
        subprocess.run([openssl, *words.split(), *files], check=True, capture_output=True)
        return made


class HttpReceiver:
    """POST /v1/metrics in protobuf, gzip or not; with a certificate, from its holders only."""

    def __init__(self, receiver: Receiver, certificate: Certificate | None = None) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                headers = {name.lower(): text for name, text in self.headers.items()}
                answer = receiver.keep(self.path, headers, body)
                self.send_response(answer.status)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(answer.body)))
                for name, text in answer.headers.items():
                    self.send_header(name, str(text))
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if certificate:
            tls = ssl.create_default_context(
                ssl.Purpose.CLIENT_AUTH, cafile=certificate.certificate
            )
            tls.load_cert_chain(certificate.certificate, certificate.key)
            tls.verify_mode = ssl.CERT_REQUIRED
            self._server.socket = tls.wrap_socket(
                self._server.socket,
                server_side=True,
                do_handshake_on_connect=False,  # but in the handler's thread, at its first read
            )
            self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that was refused
        receiver.http_port = self._server.server_port
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class GrpcReceiver:
    """opentelemetry.proto.collector.metrics.v1.MetricsService, without generated code."""

    def __init__(
        self, receiver: Receiver, certificate: Certificate | None = None, port: int = 0
    ) -> None:
        def export(body: bytes, context: Any) -> bytes:
            metadata = {entry.key: str(entry.value) for entry in context.invocation_metadata()}
            answer = receiver.keep("grpc", metadata, body)
            context.set_trailing_metadata(tuple(answer.headers.items()))
            if isinstance(answer.status, grpc.StatusCode):
                context.abort(answer.status, "as the test wants it")
            return answer.body

        self._server = grpc.server(ThreadPoolExecutor(2))
        self._server.add_generic_rpc_handlers(
            (
                grpc.method_handlers_generic_handler(
                    "opentelemetry.proto.collector.metrics.v1.MetricsService",
                    {"Export": grpc.unary_unary_rpc_method_handler(export)},
                ),
            )
        )
        if certificate:
            pem, key = certificate.certificate.read_bytes(), certificate.key.read_bytes()
            credentials = grpc.ssl_server_credentials([(key, pem)], pem, require_client_auth=True)
            receiver.grpc_port = self._server.add_secure_port("127.0.0.1:0", credentials)
        else:
            receiver.grpc_port = self._server.add_insecure_port(f"127.0.0.1:{port}")
        self._server.start()

    def close(self) -> None:
        self._server.stop(None).wait()
