"""The control socket: a running agent is asked to let the GPUs go, or to take them back.

One JSON object a line, the request {"do": "quiesce"}, the answer {"ok": true, "text": "..."}. Only
the agent's own user and root are answered: the socket's mode says so, and so does SO_PEERCRED.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingMixIn, UnixStreamServer
from threading import Thread
from typing import Any, NamedTuple

from otel_gpu.model import OtelGpuError

RUN = Path("/run/otel-gpu/control.sock")
LONGEST_LINE = 4096
IDLE_S = 5.0
"""How long a client may take to say what it wants."""

log = logging.getLogger(__name__)


class ControlError(OtelGpuError):
    """No agent can be asked, or it did not do what it was asked."""


class Reply(NamedTuple):
    """Whether it was done, and what to tell the person who asked."""

    ok: bool
    text: str


Orders = Mapping[str, Callable[[], Reply]]


def place(environ: Mapping[str, str]) -> Path:
    """Give where the socket is: under XDG_RUNTIME_DIR, else in /run/otel-gpu."""
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    return Path(runtime) / "otel-gpu.sock" if runtime else RUN


class Control:
    """Carries out the orders that come over a socket, from construction to `close`.

    A place where no socket can be made costs the agent nothing but these orders: it is said once.
    """

    def __init__(self, path: Path, orders: Orders) -> None:
        self._server: _Server | None = None
        try:
            self._server = _Server(free(path), orders)
        except (OSError, ControlError) as error:
            log.warning("otel-gpu quiesce and resume will not reach this agent: %s", error)
            return
        log.info("orders are taken at %s", path)
        Thread(target=self._server.serve_forever, name="otel-gpu-control", daemon=True).start()

    def close(self) -> None:
        """Take the socket away."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            with suppress(OSError):
                self._server.path.unlink()


def ask(path: Path, order: str, timeout_s: float) -> Reply:
    """Give an order to the agent behind a socket. Raises ControlError: there is none."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(timeout_s)
        try:
            client.connect(str(path))
            client.sendall(json.dumps({"do": order}).encode() + b"\n")
            answer: dict[str, Any] = json.loads(client.makefile().readline() or "{}")
        except TimeoutError as error:
            raise ControlError(f"{path}: no answer within {timeout_s:g} s") from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ControlError(
                f"{path}: {reason}. Is the agent running here, as this user? It says in its log "
                "where its socket is; --socket names another"
            ) from error
    if not answer:
        raise ControlError(f"{path}: the agent answers its own user and root only")
    return Reply(bool(answer.get("ok")), str(answer.get("text", "")))


def free(path: Path) -> Path:
    """Make room for a socket: a killed agent's is removed. Raises ControlError, OSError."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except FileNotFoundError:
            return path
        except ConnectionRefusedError:
            path.unlink()
            return path
    raise ControlError(f"{path}: another agent listens there")


class _Handler(StreamRequestHandler):
    timeout = IDLE_S

    def handle(self) -> None:
        """Answer one order; strangers, and who says nothing, get no answer."""
        server = self.server
        if not isinstance(server, _Server) or not _may(self.connection):
            return
        with suppress(OSError):
            self.wfile.write(json.dumps(server.obey(self.rfile.readline(LONGEST_LINE))).encode())
            self.wfile.write(b"\n")


class _Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, path: Path, orders: Orders) -> None:
        self.path = path
        self._orders = orders
        super().__init__(str(path), _Handler)

    def server_bind(self) -> None:
        """Bind; nobody can connect yet when the mode is set."""
        super().server_bind()
        self.path.chmod(0o600)

    def obey(self, line: bytes) -> dict[str, object]:
        """Carry an order out."""
        try:
            order = self._orders[json.loads(line)["do"]]
        except (ValueError, KeyError, TypeError):
            known = ", ".join(self._orders)
            return Reply(ok=False, text=f"no such order: there is {known}")._asdict()
        return order()._asdict()


def _may(connection: socket.socket) -> bool:
    size = struct.calcsize("3i")
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    _, uid, _ = struct.unpack("3i", credentials)
    return uid in {0, os.geteuid()}
