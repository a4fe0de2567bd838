"""uvicorn's HTTP protocol, with the time-outs that it does not have, and TLS clients' names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a client may take, in seconds, before its connection is dropped.

    `headers`: from the first byte of a request, or from connecting, to the end of its headers.
    `response`: to take an answer; a page over a slow line needs seconds. `handshake`: TLS.
    `idle`: between two requests, more than the usual scrape interval of a minute.
    """

    headers: float = 5.0
    response: float = 30.0
    handshake: float = 5.0
    idle: float = 75.0


PATIENCE = Patience()

HEAD_BYTES = 64 << 10
"""What a request line and its headers may have; the parser would take any number."""

Admits = Callable[[dict[str, Any] | None], bool]


class Timed(HttpToolsProtocol):
    """One connection: a timer runs while its client owes something.

    `admits` is asked about a TLS client's certificate; `most` connections are kept at once. The
    other arguments are uvicorn's.
    """

    def __init__(
        self, *args: Any, patience: Patience, admits: Admits, most: int, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self._most = most
        self._patience = patience
        self._admits = admits
        self._timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0  # since the last headers were complete

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request, if the client may come in."""
        super().connection_made(transport)
        # uvicorn's own limit counts requests; one that only holds a file handle sends none.
        if len(self.connections) > self._most:
            transport.abort()
        secured = transport.get_extra_info("ssl_object")
        if secured is not None and not self._admits(secured.getpeercert()):
            transport.abort()
        self._expect(self._patience.headers)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._expect(None)
        self._unset_keepalive_if_required()  # uvicorn leaves it running after an error
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless the headers have no end."""
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES:
            self._drop()
        else:
            super().data_received(data)

    def on_message_begin(self) -> None:
        """Wait for the rest of the headers."""
        super().on_message_begin()
        self._expect(self._patience.headers)

    def on_headers_complete(self) -> None:
        """Wait for the client to take the answer."""
        super().on_headers_complete()
        self._head_bytes = 0
        self._expect(self._patience.response)

    def on_response_complete(self) -> None:
        """Wait for the next request, as uvicorn does, or for the last bytes to be taken."""
        self._expect(None)
        super().on_response_complete()
        if self.transport.is_closing() or not self.cycle.response_complete:  # or a pipelined one
            self._expect(self._patience.response)

    def timeout_keep_alive_handler(self) -> None:
        """End a connection on which nothing came for long."""
        self._drop()

    def _expect(self, within_s: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if within_s is None else self.loop.call_later(within_s, self._drop)

    def _drop(self) -> None:
        """Close at once: an orderly end would wait for a client that does not read."""
        self.transport.abort()
