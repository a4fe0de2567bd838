"""A collector that takes everything and keeps nothing: HTTP and gRPC, in a process of its own.

    python -m bench.sink

Prints its HTTP and its gRPC port, and serves until its standard input ends.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import grpc  # type: ignore[import-untyped]  # noqa: TID251 - this end speaks gRPC too; no types

SERVICE = "opentelemetry.proto.collector.metrics.v1.MetricsService"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=http.serve_forever, daemon=True).start()
    rpc: Any = grpc.server(ThreadPoolExecutor(2))
    export = grpc.unary_unary_rpc_method_handler(lambda _request, _context: b"")
    rpc.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(SERVICE, {"Export": export}),)
    )
    port = rpc.add_insecure_port("127.0.0.1:0")
    rpc.start()
    print(http.server_port, port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
