"""HTTP: sockets, and uvicorn in a thread of its own, for any ASGI application."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import math
import os
import resource
import socket
import ssl
from functools import partial
from threading import Thread
from typing import Any, cast

import uvicorn

from otel_gpu.config import split_address
from otel_gpu.model import ConfigError
from otel_gpu.pipeline.protocol import PATIENCE, Admits, Patience, Timed

BACKLOG = 512
"""Connections that wait to be accepted; a scrape storm after a network fault is served in turn."""

CONNECTIONS = 2_000
"""More at once are dropped: the agent shares a node's memory."""

GRACE_S = 1
"""What requests that are under way get when the server stops; with the rest, under 2 s."""


def listen(address: str, key: str) -> socket.socket:
    """Bind and listen. ":9400" is every address, IPv4 and IPv6; port 0 is a free one.

    `key` is the configuration key that a ConfigError names.
    """
    try:
        host, port = split_address(address)
        return _prompt(_one_address(host, port) if host else _every_address(port))
    except ValueError as error:
        raise ConfigError(f"{key}: {address} {error}") from error
    except OSError as error:
        raise ConfigError(f"{key}: cannot listen on {address}: {_advice(error)}") from error


def connections() -> int:
    """Give how many clients may be connected: the driver and the queue need file handles too."""
    handles, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CONNECTIONS if handles == resource.RLIM_INFINITY else min(CONNECTIONS, handles // 2)


class Server:
    """Serves an application on a socket, from `begin` until `stop`; with a context over TLS.

    `admits` judges the clients' certificates. It runs off the main thread, where uvicorn leaves
    signals alone.
    """

    def __init__(
        self,
        app: Any,
        listener: socket.socket,
        *,
        context: ssl.SSLContext | None = None,
        admits: Admits = lambda _certificate: True,
        patience: Patience = PATIENCE,
    ) -> None:
        self._listener = listener
        self._loop = partial(_Loop, patience.handshake if context else None)
        self.port: int = listener.getsockname()[1]
        config = uvicorn.Config(
            app,
            http=cast("Any", partial(Timed, patience=patience, admits=admits, most=connections())),
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level=logging.CRITICAL,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE_S,
            timeout_keep_alive=math.ceil(patience.idle),
        )
        config.load()
        config.ssl = context
        self._server = uvicorn.Server(config)
        self._thread = Thread(target=self._run, name="otel-gpu-http", daemon=True)

    def begin(self) -> None:
        """Start to serve."""
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    def shared(self) -> socket.socket:
        """Give the socket to another server, which may serve on it beside this one or after it."""
        return self._listener.dup()

    def stop(self, timeout_s: float) -> bool:
        """Stop accepting, let requests under way end, close; whether that was done in time."""
        if self._thread.ident is None:
            self._listener.close()
            return True
        self._server.should_exit = True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        with (
            contextlib.closing(self._listener),
            asyncio.Runner(loop_factory=self._loop) as runner,
        ):
            runner.run(self._server.serve(sockets=[self._listener]))


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose TLS handshakes end in time; uvicorn has no option for that."""

    def __init__(self, handshake_s: float | None) -> None:
        super().__init__()
        self._handshake_s = handshake_s

    async def create_server(self, *args: Any, **options: Any) -> Any:
        """Listen, as uvicorn asks for."""
        return await super().create_server(
            *args, ssl_handshake_timeout=self._handshake_s, **options
        )


def _prompt(listener: socket.socket) -> socket.socket:
    """Have what is written sent at once.

    Connections inherit it. asyncio sets it on sockets that were made with the protocol's number
    only; without it a client that keeps its connection waits 40 ms for each page.
    """
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _every_address(port: int) -> socket.socket:
    """Listen on all addresses; IPv4 only, where the kernel has no IPv6 or has it switched off."""
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(
                ("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG
            )
        except OSError as error:
            if error.errno not in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}:
                raise
    return socket.create_server(("", port), backlog=BACKLOG)


def _one_address(host: str, port: int) -> socket.socket:
    """Listen on the address that a name stands for: its IPv4 one, if it has several."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, *_, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    # create_server takes two parts only; the other two of an IPv6 one are its flow and its zone.
    if family != socket.AF_INET6:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _advice(error: OSError) -> str:
    """Say what an error of `bind` means, and what to do about it."""
    if error.errno == errno.EADDRINUSE:
        return "the port is taken. Stop what listens there, or choose another port"
    if error.errno in {errno.EACCES, errno.EPERM}:
        return "not permitted. Choose a port over 1023"
    if isinstance(error, socket.gaierror):
        return f"the name is not known ({error.strerror})"
    if error.errno == errno.EADDRNOTAVAIL:
        return "this machine has no such address"
    return os.strerror(error.errno or 0).lower()
