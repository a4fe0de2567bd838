"""The API of Kubernetes for tests: a real HTTP server with pods and ResourceSlices to list, watch.

It does what the real one promises: bearer tokens, field selectors, pages, metadata only, watches
that begin at a version, bookmarks, and 410 for one that is too old.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

METADATA = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=1"


@dataclass
class Cluster:
    """What the server knows. Change it through `put` and `remove`, so that watches hear of it."""

    token: str = "s3cret"
    page: int = 2
    pods: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    slices: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # by API version
    events: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    version: int = 100
    oldest: int = 0
    status: int = 200
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)
    ended: bool = False
    url: str = ""

    def put(self, name: str, namespace: str = "research", **metadata: Any) -> None:
        """Let a pod run."""
        key = (namespace, name)
        kind = "MODIFIED" if key in self.pods else "ADDED"
        self.pods[key] = {"name": name, "namespace": namespace, "uid": f"uid-{name}"} | metadata
        self._tell(kind, self.pods[key])

    def remove(self, name: str, namespace: str = "research") -> None:
        """Let a pod end."""
        self._tell("DELETED", self.pods.pop((namespace, name)))

    def forget(self) -> None:
        """Know no version from before now, and end every watch."""
        with self.changed:
            self.version += 1
            self.oldest = self.version
            self.events.clear()
            self.changed.notify_all()

    def _tell(self, kind: str, metadata: dict[str, Any]) -> None:
        with self.changed:
            self.version += 1
            metadata["resourceVersion"] = f"{self.version}"
            self.events.append((self.version, kind, {"metadata": dict(metadata)}))
            self.changed.notify_all()

    def answer(self, path: str, query: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        """Answer a list."""
        if path == "/api/v1/pods":
            items = [{"metadata": one} for one in self.pods.values()]
        else:
            version = path.split("/")[3]
            if version not in self.slices:
                return 404, {"message": "the server could not find the requested resource"}
            items = self.slices[version]
        begin = int(query.get("continue", "0"))
        end = begin + self.page
        metadata = {"resourceVersion": f"{self.version}"}
        if end < len(items):
            metadata["continue"] = f"{end}"
        return 200, {"items": items[begin:end], "metadata": metadata}

    def watched(self, since: int) -> Iterator[dict[str, Any]]:
        """Answer a watch."""
        while not self.ended:
            with self.changed:
                if since < self.oldest:
                    yield {"type": "ERROR", "object": {"code": 410, "message": "too old"}}
                    return
                found = [event for event in self.events if event[0] > since]
                if not found:
                    self.changed.wait(0.2)
            for version, kind, item in found:
                since = version
                yield {"type": kind, "object": item}
            if found:
                bookmark = {"metadata": {"resourceVersion": f"{since}"}}
                yield {"type": "BOOKMARK", "object": bookmark}


class Handler(BaseHTTPRequestHandler):
    """One connection; bound to a cluster by a class of its own."""

    cluster: ClassVar[Cluster]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        self.cluster.asked.append((url.path, query | {"accept": self.headers["Accept"]}))
        if self.headers["Authorization"] != f"Bearer {self.cluster.token}":
            self.say(401, {"message": "Unauthorized"})
        elif self.cluster.status != 200:
            self.say(self.cluster.status, {"message": "no"})
        elif "watch" in query:
            self.stream(int(query["resourceVersion"]))
        else:
            self.say(*self.cluster.answer(url.path, query))

    def say(self, status: int, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, since: int) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for event in self.cluster.watched(since):
                line = json.dumps(event).encode() + b"\n"
                self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving(cluster: Cluster, account: Path) -> Iterator[Cluster]:
    """Serve, with a service account in a directory."""
    account.mkdir(exist_ok=True)
    (account / "token").write_text(cluster.token, encoding="ascii")
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"cluster": cluster}))
    server.daemon_threads = True
    cluster.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield cluster
    finally:
        cluster.ended = True
        server.shutdown()
        server.server_close()
        thread.join()
