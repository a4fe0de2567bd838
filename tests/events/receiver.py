"""A real OTLP receiver of log records: HTTP and gRPC on loopback, which keep what they get."""

from __future__ import annotations

import gzip
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import Any

import grpc  # type: ignore[import-untyped]  # noqa: TID251 - this end speaks gRPC too; no types
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

PATIENCE_S = 15.0
SERVICE = "opentelemetry.proto.collector.logs.v1.LogsService"
OK = ExportLogsServiceResponse().SerializeToString()


@dataclass
class Receiver:
    """What came. `statuses` answer the next requests: HTTP statuses or gRPC codes; then success."""

    requests: list[ExportLogsServiceRequest] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    statuses: deque[Any] = field(default_factory=deque)
    refused: int = 0
    port: int = 0
    _changed: Condition = field(default_factory=Condition)

    def keep(self, path: str, headers: Mapping[str, str], body: bytes) -> Any:
        """Keep a request that is taken; give what to answer, or None for a success."""
        with self._changed:
            status = self.statuses.popleft() if self.statuses else None
            if status is None:
                self.requests.append(ExportLogsServiceRequest.FromString(body))
                self.headers.append(headers)
                self.paths.append(path)
            else:
                self.refused += 1
            self._changed.notify_all()
            return status

    def wait(self, count: int = 1) -> list[LogRecord]:
        """Wait until so many records came."""
        deadline_s = time.monotonic() + PATIENCE_S
        with self._changed:
            while len(self.records()) < count:
                left_s = deadline_s - time.monotonic()
                assert left_s > 0, f"{len(self.records())} of {count} records in {PATIENCE_S} s"
                self._changed.wait(left_s)
            return self.records()

    def records(self) -> list[LogRecord]:
        """Give the records, in the order in which they came."""
        return [
            record
            for request in self.requests
            for resource_logs in request.resource_logs
            for scope_logs in resource_logs.scope_logs
            for record in scope_logs.log_records
        ]


def plain(value: AnyValue) -> Any:
    """Give the value that was sent."""
    return getattr(value, value.WhichOneof("value") or "string_value")


def attributes(pairs: Any) -> dict[str, Any]:
    """Give attributes as a dict."""
    several: list[KeyValue] = list(pairs)
    return {pair.key: plain(pair.value) for pair in several}


class HttpServer:
    """POST /v1/logs in protobuf, gzip or not."""

    def __init__(self, receiver: Receiver) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                headers = {name.lower(): text for name, text in self.headers.items()}
                self.send_response(receiver.keep(self.path, headers, body) or 200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(OK)))
                self.end_headers()
                self.wfile.write(OK)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", receiver.port), Handler)
        self._server.daemon_threads = True
        receiver.port = self._server.server_port
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class GrpcServer:
    """LogsService, without generated code."""

    def __init__(self, receiver: Receiver) -> None:
        def export(body: bytes, context: Any) -> bytes:
            metadata = {entry.key: str(entry.value) for entry in context.invocation_metadata()}
            code = receiver.keep("grpc", metadata, body)
            if code is not None:
                context.abort(code, "as the test wants it")
            return OK

        handler = grpc.unary_unary_rpc_method_handler(export)
        self._server = grpc.server(ThreadPoolExecutor(2))
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, {"Export": handler}),)
        )
        receiver.port = self._server.add_insecure_port(f"127.0.0.1:{receiver.port}")
        self._server.start()

    def close(self) -> None:
        self._server.stop(None).wait()
