"""OTLP receivers with bad days: at times they are down, refuse, take their time or break off."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Protocol

import grpc  # type: ignore[import-untyped]  # noqa: TID251 - this end speaks gRPC too; no types

from bench.sink import SERVICE
from bench.soak.tally import Tally
from bench.soak.windows import Habit, Storm

WEATHER: Mapping[str, Habit] = {
    "down": Habit(40, 3, 12),
    "unavailable": Habit(30, 2, 10),
    "later": Habit(60, 2, 6),  # says when to come again
    "slow": Habit(30, 2, 10),
    "broken": Habit(50, 1, 5),  # reads a request and breaks off
}
SLOW_S = 2.0
LOGS = "opentelemetry.proto.collector.logs.v1.LogsService"

Now = Callable[[], str]
"""Gives the kind of weather there is now, or ""."""


class Receiver(Protocol):
    """One end that the agent pushes to. What is down does not listen, and keeps its port."""

    port: int
    weather: str

    def open(self) -> None:
        """Listen; does nothing when it does so already."""

    def close(self) -> None:
        """Listen no more; does nothing when it does not."""


def follow(receiver: Receiver, storm: Storm, now_s: float) -> None:
    """Give a receiver the weather of the moment."""
    kinds = [window.kind for window in storm.at(now_s)]
    receiver.weather = "down" if "down" in kinds else "".join(kinds[:1])
    (receiver.close if receiver.weather == "down" else receiver.open)()


class Http:
    """POST on any path."""

    def __init__(self, tally: Tally) -> None:
        self.weather = ""
        self._handler = handler(tally, lambda: self.weather)
        self._server: ThreadingHTTPServer | None = None
        self.port = 0
        self.open()

    def open(self) -> None:
        """Listen, on the same port as before; does nothing when it does so already."""
        if self._server is None:
            self._server = ThreadingHTTPServer(("127.0.0.1", self.port), self._handler)
            self._server.daemon_threads = True
            self.port = self._server.server_port
            Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()

    def close(self) -> None:
        """Listen no more. Connections that are open end at their next request."""
        server, self._server = self._server, None
        if server:
            server.shutdown()
            server.server_close()


class Grpc:
    """The two services that the agent pushes to."""

    def __init__(self, tally: Tally) -> None:
        self.weather = ""
        self._export = export(tally, lambda: self.weather)
        self._server: Any = None
        self.port = 0
        self.open()

    def open(self) -> None:
        """Listen, on the same port as before; does nothing when it does so already."""
        if self._server is not None:
            return
        server = grpc.server(ThreadPoolExecutor(2))
        method = grpc.unary_unary_rpc_method_handler(self._export)
        server.add_generic_rpc_handlers(
            tuple(
                grpc.method_handlers_generic_handler(service, {"Export": method})
                for service in (SERVICE, LOGS)
            )
        )
        port = server.add_insecure_port(f"127.0.0.1:{self.port}")
        server.start()
        self._server, self.port = server, port

    def close(self) -> None:
        """Listen no more, and end what is open."""
        server, self._server = self._server, None
        if server:
            server.stop(None).wait()


def handler(tally: Tally, now: Now) -> type[BaseHTTPRequestHandler]:
    """Make the class that answers requests."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            weather = now()
            if weather in {"down", "broken"}:
                tally.add("http broken off")
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            if weather == "slow":
                time.sleep(SLOW_S)
            refused = weather in {"unavailable", "later"}
            self.send_response(503 if refused else 200)
            if weather == "later":
                self.send_header("retry-after", "2")
            self.send_header("content-length", "0")
            self.end_headers()
            tally.add("http refused" if refused else f"http delivered {self.path}")

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def export(tally: Tally, now: Now) -> Callable[[bytes, Any], bytes]:
    """Make the function that answers calls."""

    def answer(_body: bytes, context: Any) -> bytes:
        weather = now()
        if weather == "slow":
            time.sleep(SLOW_S)
        elif weather:
            tally.add("grpc refused")
            code = "DATA_LOSS" if weather == "broken" else "UNAVAILABLE"
            context.abort(grpc.StatusCode[code], f"it is {weather}")
        tally.add("grpc delivered")
        return b""

    return answer
