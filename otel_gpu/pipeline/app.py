"""The HTTP application: which path gives what. Plain ASGI 3."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from otel_gpu.pipeline import Context
from otel_gpu.pipeline.index import index
from otel_gpu.pipeline.negotiation import notation, takes_gzip
from otel_gpu.pipeline.scrapes import BusyError, Scrapes

log = logging.getLogger(__name__)

TEXT = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"
JSON = "application/json"

PART = 64 * 1024
"""Bytes of a page that are given to a connection at once: a client that reads slowly holds no more
than two of these."""

ONLY_STYLE = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}


class Request(NamedTuple):
    """What an answer depends on."""

    query: Mapping[str, list[str]]
    headers: Mapping[str, str]


class Response(NamedTuple):
    """What is sent."""

    body: bytes
    status: int = 200
    media_type: str = TEXT
    headers: Mapping[str, str] = {}


class App:
    """Answers GET and HEAD on a few paths. `headers` gives what is sent with every answer."""

    def __init__(
        self,
        scrapes: Scrapes,
        context: Context,
        headers: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._scrapes = scrapes
        self._context = context
        self._headers = headers
        self._paths: Mapping[str, Callable[[Request], Awaitable[Response]]] = {
            "/": self._index,
            "/metrics": self._metrics,
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/debug/status": self._status,
        }

    async def __call__(self, scope: Mapping[str, Any], _receive: Any, send: Any) -> None:
        """Answer one request (ASGI, scope type http: the server offers no other)."""
        response = await self._answer(scope)
        headers = {
            "content-type": response.media_type,
            "content-length": str(len(response.body)),
            "x-content-type-options": "nosniff",
            **response.headers,
            **{name.lower(): text for name, text in self._headers().items()},
        }
        await send(
            {
                "type": "http.response.start",
                "status": response.status,
                "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            }
        )
        body = memoryview(response.body)  # one page for all who asked for it: none is copied
        while len(body) > PART:
            await send({"type": "http.response.body", "body": body[:PART], "more_body": True})
            body = body[PART:]
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Mapping[str, Any]) -> Response:
        answer = self._paths.get(scope["path"])
        if answer is None:
            return _refusal(404, f"not here. There is: {' '.join(self._paths)}")
        if scope["method"] not in {"GET", "HEAD"}:
            return _refusal(405, "only GET and HEAD", allow="GET, HEAD")
        request = _request(scope)
        if request.headers.get("content-length", "0") != "0" or (
            "transfer-encoding" in request.headers
        ):
            # Nothing here reads one, and who sends it slowly would keep the connection.
            return _refusal(413, "a request here has no body", connection="close")
        try:
            return await answer(request)
        except Exception:  # one page that fails leaves the others served
            log.exception("%s failed", scope["path"])
            return _refusal(500, "this failed, and the agent's log says why")

    async def _metrics(self, request: Request) -> Response:
        began_s = time.monotonic()
        form = notation(request.headers.get("accept", ""))
        compress = takes_gzip(request.headers.get("accept-encoding", ""))
        only = frozenset(request.query.get("name[]", ()))
        try:
            body = await self._scrapes.page(form, only, compress=compress)
        except BusyError:
            return _refusal(503, "too many scrapes at once", **{"retry-after": "1"})
        if body is None:
            return _refusal(503, "nothing is collected yet", **{"retry-after": "1"})
        self._context.record("otel_gpu.scrape.duration", time.monotonic() - began_s, ())
        headers = {"vary": "Accept, Accept-Encoding"}
        if compress:
            headers["content-encoding"] = "gzip"
        return Response(body, media_type=form.value, headers=headers)

    async def _index(self, _request: Request) -> Response:
        context = self._context
        data = await self._scrapes.collection()
        page = index(context.snapshot(), data, context.version, list(self._paths))
        return Response(page.encode(errors="replace"), media_type=HTML, headers=ONLY_STYLE)

    async def _healthz(self, _request: Request) -> Response:
        return _verdict(self._context.healthy())

    async def _readyz(self, request: Request) -> Response:
        trouble = self._context.ready()
        if trouble is None and request.query.get("fresh") == ["1"]:
            trouble = self._context.fresh()
        return _verdict(trouble)

    async def _status(self, _request: Request) -> Response:
        text = await self._scrapes.run(
            lambda: json.dumps(self._context.status(), indent=2, default=str)
        )
        return Response(f"{text}\n".encode(), media_type=JSON)


def _request(scope: Mapping[str, Any]) -> Request:
    """Read the query and the headers; a header that comes twice counts as one list."""
    headers: dict[str, str] = {}
    for raw, value in scope["headers"]:
        name = raw.decode("latin-1").lower()
        text = value.decode("latin-1")
        headers[name] = f"{headers[name]},{text}" if name in headers else text
    return Request(parse_qs(scope["query_string"].decode("latin-1")), headers)


def _verdict(trouble: str | None) -> Response:
    return Response(b"ok\n") if trouble is None else _refusal(503, trouble)


def _refusal(status: int, why: str, **headers: str) -> Response:
    return Response(f"{why}\n".encode(errors="replace"), status, headers=headers)
