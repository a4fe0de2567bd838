"""What an OTLP target answers is read as far as there is use for it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
import requests

from otel_gpu.pipeline.session import MOST_BYTES, Session

CHUNK = b"10000\r\n" + b"x" * 65536 + b"\r\n"


class Endless:
    """Answers every request with 200 and a body that goes on until the client hangs up."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1/metrics"
        self.sent = 0
        self.hung_up = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            connection.settimeout(10)
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            with suppress(OSError):
                while True:
                    connection.sendall(CHUNK)
                    self.sent += 65536
            self.hung_up.set()

    def close(self) -> None:
        self._listener.close()
        self._thread.join(15)


@pytest.fixture
def endless() -> Iterator[Endless]:
    endless = Endless()
    yield endless
    endless.close()


def test_an_answer_without_end_is_not_read_to_it(endless: Endless) -> None:
    with Session() as session:
        response = session.post(endless.url, data=b"metrics", timeout=10)
        assert response.status_code == requests.codes.ok
        assert len(response.content) == MOST_BYTES
    assert endless.hung_up.wait(10)
    assert endless.sent < 20 * MOST_BYTES  # what the sockets' buffers hold
