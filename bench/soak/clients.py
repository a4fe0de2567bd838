"""Who comes to the agent's endpoint: Prometheus, probes of its health, and those who go away."""

from __future__ import annotations

import gzip
import http.client
import itertools
import json
import re
import socket
import struct
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

from bench.soak.course import Course

TIMEOUT_S = 10.0
OPENMETRICS = "application/openmetrics-text;version=1.0.0"
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: soak\r\nAccept-Encoding: gzip\r\n\r\n"
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: a close is a reset, as after a crash
STAY_S = 20.0  # of a client that connects and says nothing more


class Way(NamedTuple):
    """How a page is asked for."""

    name: str
    accept: str = "text/plain"
    encoding: str = "identity"
    some: bool = False  # only some metrics, by name


WAYS = (
    Way("text"),
    Way("openmetrics", OPENMETRICS),
    Way("text, gzip", encoding="gzip"),
    Way("openmetrics, gzip", OPENMETRICS, "gzip"),
    Way("name[]", some=True),
    Way("name[], openmetrics, gzip", OPENMETRICS, "gzip", some=True),
)


class Scraper:
    """A Prometheus that keeps its connection, and asks in another way each time."""

    def __init__(self, port: int, course: Course) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        self._course = course
        self._ways = itertools.cycle(WAYS)
        self._random = Random(f"{course.seed}/scraper")  # noqa: S311 - a timetable, not a secret
        self._names: list[str] = []

    def scrape(self) -> None:
        """Ask once. OSError, HTTPException: it was not answered."""
        way = next(self._ways)
        try:
            trouble = self._scrape(way)
        except (OSError, http.client.HTTPException, EOFError) as error:
            self._connection.close()
            trouble = f"{type(error).__name__}: {error}"
        self._course.tally.add("scrapes failed" if trouble else "scrapes ok")
        if trouble:
            self._course.fail(f"a scrape ({way.name}): {trouble}")

    def _scrape(self, way: Way) -> str:
        """Ask once; say what is wrong with the answer."""
        wanted = self._random.sample(self._names, min(3, len(self._names))) if way.some else []
        query = "&".join(f"name[]={quote(name)}" for name in wanted)
        headers = {"Accept": way.accept, "Accept-Encoding": way.encoding}
        self._connection.request("GET", f"/metrics?{query}", headers=headers)
        response = self._connection.getresponse()
        body = response.read()
        if response.status != 200:
            return f"status {response.status}: {body[:200]!r}"
        if (response.getheader("content-encoding") == "gzip") != (way.encoding == "gzip"):
            return "not in the encoding that was asked for"
        text = (gzip.decompress(body) if way.encoding == "gzip" else body).decode()
        self._course.tally.add("bytes scraped", len(body))
        if way.name == "text":
            self._names = re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
        return wrong(text, openmetrics=way.accept == OPENMETRICS, wanted=wanted)


def wrong(text: str, *, openmetrics: bool, wanted: list[str]) -> str:
    """Say what is wrong with a page; what it tells is judged elsewhere."""
    if openmetrics and not text.endswith("# EOF\n"):
        return "the page has no end"
    if not wanted and "otel_gpu_build_info" not in text:
        return "the agent's own metrics are missing"
    return ""


class Probes:
    """The kubelet, and a person who looks at the state of things."""

    def __init__(self, port: int, course: Course) -> None:
        self._port, self._course = port, course
        self.status: dict[str, Any] = {}

    def look(self) -> None:
        """Ask for what has to be answered at any time."""
        for path in ("/healthz", "/readyz", "/"):
            status, body = get(self._port, path)
            self._course.tally.add("probes")
            if status != 200:
                self._course.fail(f"{path}: status {status}: {body[:200]!r}")
        status, body = get(self._port, "/debug/status")
        if status == 200:
            self.status = json.loads(body)
        else:
            self._course.fail(f"/debug/status: {status}")
        get(self._port, "/readyz?fresh=1")  # is refused at times, rightly
        get(self._port, "/not/here")


def get(port: int, path: str) -> tuple[int, bytes]:
    """Ask for a path on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


class Strays:
    """Clients that connect and go away, each in its own way."""

    def __init__(self, port: int, course: Course) -> None:
        self._port, self._course = port, course
        self._random = Random(f"{course.seed}/strays")  # noqa: S311 - a timetable, not a secret
        self._staying: list[tuple[float, socket.socket]] = []
        self._kinds: tuple[Callable[[socket.socket], bool], ...] = (
            self._leave,
            self._half,
            self._reset,
            self._unread,
            self._stay,
        )

    def come(self) -> None:
        """Let some come, and some of those who stayed go; in a calm all go."""
        calm, now_s = self._course.calm(), time.monotonic()
        going = [one for until_s, one in self._staying if calm or until_s <= now_s]
        self._staying = [(until_s, one) for until_s, one in self._staying if one not in going]
        for one in going:
            one.close()
        for kind in () if calm else self._chosen():
            client = socket.create_connection(("127.0.0.1", self._port), TIMEOUT_S)
            self._course.tally.add("strays")
            try:
                if not kind(client):
                    client.close()
            except OSError:  # the agent was quicker
                client.close()

    def _chosen(self) -> Iterator[Callable[[socket.socket], bool]]:
        for _ in range(self._random.randint(1, 4)):
            yield self._random.choice(self._kinds)

    def _leave(self, _client: socket.socket) -> bool:
        return False

    def _half(self, client: socket.socket) -> bool:
        client.sendall(REQUEST[: self._random.randint(1, len(REQUEST) - 1)])
        return self._stays(client)

    def _reset(self, client: socket.socket) -> bool:
        client.sendall(REQUEST)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        return False

    def _unread(self, client: socket.socket) -> bool:
        client.sendall(REQUEST * 3)
        return self._stays(client)

    def _stay(self, client: socket.socket) -> bool:
        client.sendall(REQUEST)
        client.recv(1)
        return self._stays(client)

    def _stays(self, client: socket.socket) -> bool:
        self._staying.append((time.monotonic() + STAY_S * self._random.random(), client))
        return True
