"""A client that takes its time is dropped, and holds up nobody."""

from __future__ import annotations

import http.client
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from otel_gpu.pipeline import tls
from otel_gpu.pipeline.protocol import Patience
from otel_gpu.pipeline.server import Server, listen
from otel_gpu.pipeline.web_config import TlsServer
from tests.receiver import Certificate

BRIEF = Patience(headers=0.2, response=0.4, handshake=0.2, idle=1)
LARGE = bytes(32 << 20)  # more than the kernel buffers
PATIENCE_S = 10.0


async def serve(scope: dict[str, Any], _receive: Any, send: Any) -> None:
    body = LARGE if scope["path"] == "/large" else b"page"
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    rest = memoryview(body)
    while len(rest) > 1 << 16:
        await send({"type": "http.response.body", "body": rest[: 1 << 16], "more_body": True})
        rest = rest[1 << 16 :]
    await send({"type": "http.response.body", "body": rest})


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server(serve, listen("127.0.0.1:0", "key"), patience=BRIEF)
    server.begin()
    yield server
    assert server.stop(5.0)


def connect(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)


def end_s(connection: socket.socket) -> float:
    """Read until the server closes; give how long that took."""
    began_s = time.monotonic()
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    return time.monotonic() - began_s


def drip(connection: socket.socket, count: int) -> None:
    """Send a byte now and then."""
    for _ in range(count):
        connection.sendall(b"x")
        time.sleep(0.02)  # what a slow client does


def status(server: Server) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status
    finally:
        connection.close()


def test_headers_without_end_are_not_kept(server: Server) -> None:
    with connect(server) as greedy:
        greedy.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        with pytest.raises(ConnectionError):
            greedy.sendall(b"X-A: y\r\n" * 2_000_000)
    assert status(server) == 200


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n"])
def test_headers_that_do_not_come_end_the_connection(server: Server, sent: bytes) -> None:
    with connect(server) as slow:
        slow.sendall(sent)
        assert end_s(slow) < PATIENCE_S
    assert status(server) == 200


def test_headers_that_come_byte_by_byte_are_not_waited_for(server: Server) -> None:
    with connect(server) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nX: ")
        with pytest.raises(OSError, match=r"reset|Broken pipe"):
            drip(slow, 1_000)


def test_an_answer_that_is_not_taken_is_given_up(server: Server) -> None:
    with connect(server) as slow:
        slow.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        assert slow.recv(1) == b"H"
        time.sleep(2 * BRIEF.response)  # what a slow reader does
        received = 0
        try:
            while part := slow.recv(1 << 20):
                received += len(part)
        except ConnectionResetError:
            pass
    assert received < len(LARGE)


def test_a_second_request_on_the_line_is_waited_for_no_longer(server: Server) -> None:
    with connect(server) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        assert slow.recv(1) == b"H"
        time.sleep(2 * BRIEF.response)  # what a slow reader does
        received = 0
        try:
            while part := slow.recv(1 << 20):
                received += len(part)
        except ConnectionResetError:
            pass
    assert received < len(LARGE)


def test_clients_that_only_connect_take_half_of_the_file_handles_at_most() -> None:
    """In a process of its own, whose limit is low."""
    script = """
import os, resource, socket, sys
from otel_gpu.pipeline.protocol import Patience
from otel_gpu.pipeline.server import Server, listen
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
patient = Patience(headers=3600.0)  # no other reason to drop anybody
server = Server(None, listen("127.0.0.1:0", "key"), patience=patient)
server.begin()
print(server.port, flush=True)
sys.stdin.readline()
print(len(os.listdir("/proc/self/fd")), flush=True)
"""
    command = [sys.executable, "-c", script]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdin
        port = int(process.stdout.readline())
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
        deadline_s = time.monotonic() + PATIENCE_S
        while len(select.select(idle, [], [], 0.1)[0]) < 60:  # the end can be read from them
            assert time.monotonic() < deadline_s
        process.stdin.write("\n")
        process.stdin.flush()
        taken = int(process.stdout.readline())
        process.kill()
    for one in idle:
        one.close()
    assert 32 <= taken < 60


def test_a_connection_is_kept_between_requests_and_not_for_ever(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    for _ in range(2):
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"page"
        time.sleep(2 * BRIEF.headers)  # longer than a request may take

    assert connection.sock is not None
    assert end_s(connection.sock) < PATIENCE_S
    connection.close()


def test_a_client_that_stalls_in_the_handshake_is_dropped_and_blocks_nobody(
    tmp_path: Any,
) -> None:
    pair = Certificate.make(tmp_path, "server")
    context = tls.context(TlsServer(cert_file=pair.certificate, key_file=pair.key))
    listener = listen("127.0.0.1:0", "key")
    server = Server(serve, listener, context=context, patience=BRIEF)
    server.begin()
    import ssl

    trusting = ssl.create_default_context(cafile=pair.certificate)
    with connect(server) as stalled:
        client = http.client.HTTPSConnection("127.0.0.1", server.port, context=trusting)
        client.request("GET", "/")
        assert client.getresponse().status == 200
        client.close()
        assert end_s(stalled) < PATIENCE_S
    assert server.stop(5.0)
