"""The server listens where it is told to, or says in one line why it cannot."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
import time
from typing import Any

import pytest

from otel_gpu.model import ConfigError
from otel_gpu.pipeline.server import Server, listen

KEY = "pipeline.prometheus.address"


async def hello(scope: dict[str, Any], _receive: Any, send: Any) -> None:
    body = scope["client"][0].encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def get(host: str, port: int) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(host, port, timeout=10)
    try:
        connection.request("GET", "/")
        response = connection.getresponse()
        response.read()
        return response
    finally:
        connection.close()


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")


@pytest.mark.parametrize(
    ("address", "hosts"),
    [
        ("127.0.0.1:0", ["127.0.0.1"]),
        ("localhost:0", ["127.0.0.1"]),
        (":0", ["127.0.0.1"]),
        pytest.param(":0", ["127.0.0.1", "::1"], marks=needs_ipv6),
        pytest.param("[::1]:0", ["::1"], marks=needs_ipv6),
    ],
)
def test_it_serves_where_it_is_told_to_listen(address: str, hosts: list[str]) -> None:
    server = Server(hello, listen(address, KEY))
    server.begin()

    statuses = [get(host, server.port).status for host in hosts]

    assert statuses == [200] * len(hosts)
    assert server.stop(2)
    with pytest.raises(ConnectionRefusedError):
        get(hosts[0], server.port)


@pytest.mark.parametrize("address", ["127.0.0.1:0", ":0"])
def test_a_client_that_keeps_its_connection_does_not_wait_for_an_acknowledgement(
    address: str,
) -> None:
    with listen(address, "address") as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)), listener.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_it_says_nothing_of_what_it_is_made_of() -> None:
    server = Server(hello, listen("127.0.0.1:0", KEY))
    server.begin()
    headers = {name.lower() for name, _ in get("127.0.0.1", server.port).getheaders()}
    server.stop(2)
    assert headers == {"date", "content-length"}


@pytest.mark.parametrize("address", ["127.0.0.1", ":"])
def test_a_port_that_is_taken_is_one_clear_error(address: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        full = f"{address.rstrip(':')}:{taken.getsockname()[1]}"
        with pytest.raises(ConfigError) as told:
            listen(full, KEY)
    assert str(told.value) == (
        f"{KEY}: cannot listen on {full}: the port is taken. "
        "Stop what listens there, or choose another port"
    )


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("192.0.2.1:0", "cannot listen on 192.0.2.1:0: this machine has no such address"),
        ("no.such.invalid:0", "cannot listen on no.such.invalid:0: the name is not known"),
        ("9400", "9400 is not host:port"),
    ],
)
def test_an_address_that_cannot_be_is_one_clear_error(address: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"^{KEY}: {why}"):
        listen(address, KEY)


def test_it_stops_in_time_with_a_request_under_way_and_connections_that_idle() -> None:
    arrived = threading.Event()

    async def hang(_scope: Any, _receive: Any, _send: Any) -> None:
        arrived.set()
        await asyncio.Event().wait()

    server = Server(hang, listen("127.0.0.1:0", KEY))
    server.begin()
    with (
        socket.create_connection(("127.0.0.1", server.port)),
        socket.create_connection(("127.0.0.1", server.port)) as asking,
    ):
        asking.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert arrived.wait(10)
        began_s = time.monotonic()
        assert server.stop(5)
        assert time.monotonic() - began_s < 2


def test_a_stopped_server_can_be_followed_by_another_on_its_port() -> None:
    first = Server(hello, listen("127.0.0.1:0", KEY))
    first.begin()
    get("127.0.0.1", first.port)
    assert first.stop(2)

    second = Server(hello, listen(f"127.0.0.1:{first.port}", KEY))
    second.begin()

    assert get("127.0.0.1", second.port).status == 200
    assert second.stop(2)
