"""A server as a child process: its ports, its readiness, its log, its end."""

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

T = TypeVar("T")

START_TIMEOUT = 30.0
STOP_TIMEOUT = 10.0
POLL_INTERVAL = 0.05

# The servers are on loopback, whatever HTTP_PROXY says.
_http = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ServerError(Exception):
    """A server ended, refused, or never said what a test waits for."""


class HTTPStatusError(ServerError):
    """A server answered with an error status."""

    def __init__(self, url: str, status: int, body: str) -> None:
        super().__init__(f"{url}: HTTP {status}: {body.strip()}")
        self.status = status


def free_ports(count: int) -> list[int]:
    """Return loopback ports that nobody listens on.

    Another process could take one before the server does; the servers here cannot be given a
    listening socket.
    """
    with ExitStack() as held:  # all at once, or the same port could come twice
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def get(url: str, headers: dict[str, str] | None = None) -> str:
    """Fetch a page."""
    return _answer(urllib.request.Request(url, headers=headers or {}))


def post_json(url: str, body: object) -> str:
    """Send a JSON document."""
    headers = {"Content-Type": "application/json"}
    data = json.dumps(body).encode()
    return _answer(urllib.request.Request(url, data, headers))


def _answer(request: urllib.request.Request) -> str:
    try:
        with _http.open(request, timeout=10) as response:
            return str(response.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            raise HTTPStatusError(request.full_url, error.code, error.read().decode()) from None


class Server:
    """A child process that serves HTTP; a context manager, and stoppable in between.

    It keeps its ports and its directory from one start to the next, so that a test can play an
    outage. On stopping it writes the end of its log to stderr, which pytest shows for a test that
    failed: hence one server a test, not one a session.
    """

    def __init__(self, name: str, command: Sequence[str], directory: Path, ready_url: str) -> None:
        self.name = name
        self._command = command
        self._log = directory / f"{name}.log"
        self._ready_url = ready_url
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server and return when it serves."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        try:
            self.wait_until(self._is_ready, START_TIMEOUT, "being ready")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the server as a service manager would; does nothing when it is not running."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        sys.stderr.write(f"--- log of {self.name} (exit {process.returncode})\n{self.log_tail()}\n")

    def kill(self) -> None:
        """End the server at once, without a chance to put anything in order."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def log_tail(self, lines: int = 40) -> str:
        """Return the end of what the server has logged, over all its starts."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-lines:])

    def wait_until(self, probe: Callable[[], T | None], timeout: float, what: str) -> T:
        """Ask until the probe has a truthy answer, and return that."""
        deadline = time.monotonic() + timeout
        while not (answer := probe()):
            self._require_running()
            if time.monotonic() > deadline:
                raise ServerError(f"{self.name}: no sign of {what} in {timeout:g} s")
            time.sleep(POLL_INTERVAL)
        return answer

    def _is_ready(self) -> bool:
        try:
            get(self._ready_url)
        except (HTTPStatusError, OSError):  # not listening yet, or listening and not ready
            return False
        return True

    def _require_running(self) -> None:
        """Fail at once when the server has died; one that a test has stopped may be asked."""
        if self._process is not None and self._process.poll() is not None:
            raise ServerError(f"{self.name} ended with status {self._process.returncode}")
