"""The HTTP session of an OTLP exporter: what it was given and no more, and how its request ended.

The official exporters also take headers and certificates from the environment, which configuration
has read already: it gave them to the target that they are meant for, and to no other.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import requests

from otel_gpu.config.masks import MASK
from otel_gpu.pipeline.credentials import Credentials
from otel_gpu.pipeline.failure import ExportError
from otel_gpu.pipeline.outcome import Later, Outcome, Taken, of_http

_QUERY = re.compile(r"(?<=\?)[^\s()]+")
"""What may be a key, in a URL's path that an exception quotes."""

WIRE = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "transfer-encoding",
        "user-agent",
    }
)
"""Headers that say how a request is made, not who makes it."""

CHUNK, MOST_BYTES = 16 << 10, 1 << 20
"""Of an answer, which is a few hundred bytes long."""

_WIRE_LOG = "urllib3.connectionpool"
"""The logger that writes, for debugging, the path of every request with its query."""

_sending: ContextVar[bool] = ContextVar("sending", default=False)


@dataclass(frozen=True)
class Given:
    """What a target is given: headers, by lower-case names; files; all that must not be told."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    ca_file: str | None = None
    pair: tuple[str, str] | None = None
    credentials: Credentials = field(default_factory=Credentials, repr=False)


class Session(requests.Session):
    """A session for an official exporter (its argument `session`); one export at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.outcome: Outcome | None = None
        self.given = Given()
        _keep_queries_out_of_the_log()

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        """Send, and remember what came of it. Redirects are not followed: a POST would be lost."""
        _give(request, self.given.headers)
        kwargs["verify"] = self.given.ca_file or _authorities()
        kwargs["cert"] = self.given.pair
        kwargs["allow_redirects"] = False
        kwargs["stream"] = True  # so that an answer without end is not read to it
        hidden = self.given.credentials.hidden
        sending = _sending.set(True)
        try:
            response = super().send(request, **kwargs)
            answer = _read(response)
        except OSError as error:  # RequestException is one; so is a certificate that is not there
            text = _QUERY.sub(MASK, str(_cause(error)))
            self.outcome = Later(type(error).__name__, hidden(text))
            raise
        finally:
            _sending.reset(sending)
        self.outcome = of_http(
            response.status_code,
            hidden(response.reason or ""),
            response.headers,
            hidden(answer),
        )
        return response

    def failure(self) -> ExportError | None:
        """Give, once, why the last request failed; None when it did not, or there was none."""
        outcome, self.outcome = self.outcome, None
        if outcome is None or isinstance(outcome, Taken):
            return None
        return ExportError(outcome.kind, outcome.text)


class Courier(Session):
    """Carries bodies of ours under the official exporter's address.

    The exporter makes requests out of collections only, not of bytes. So it is given an empty
    collection to export, and its URL, headers, credentials and certificates travel with `body` in
    the place of its own. It is told that all is well: whether and when to try again is not its
    business.
    """

    def __init__(self) -> None:
        super().__init__()
        self.body = b""

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        """Send `body`; `outcome` has what came of it."""
        request.prepare_body(self.body, None)
        with suppress(OSError):  # `outcome` says so
            super().send(request, **kwargs)
        taken = requests.Response()
        taken.status_code = HTTPStatus.OK
        return taken


def _read(response: requests.Response) -> bytes:
    """Read an answer, no further than there is use for, and leave it where the exporter looks."""
    answer = b""
    for part in response.iter_content(CHUNK):
        answer += part
        if len(answer) > MOST_BYTES:
            response.close()
            break
    response._content = answer[:MOST_BYTES]  # noqa: SLF001 - as if requests had read it
    return answer[:MOST_BYTES]


def _cause(error: OSError) -> object:
    """Give what urllib3 wraps: the error of the socket or of TLS, without the pool's words."""
    wrapped = error.args[0] if error.args else error
    return getattr(wrapped, "reason", None) or wrapped


def _give(request: requests.PreparedRequest, headers: Mapping[str, str]) -> None:
    """Send these headers, and none that somebody else added, such as ~/.netrc; but a URL's user."""
    has_user = bool(urlsplit(request.url or "").username)
    kept = WIRE | ({"authorization"} if has_user else set())
    for name in [name for name in request.headers if name.lower() not in kept]:
        del request.headers[name]
    for name, value in headers.items():
        if not (has_user and name == "authorization"):
            request.headers[name] = value


def _authorities() -> str | bool:
    """Give the file of authorities that requests would take: True stands for its own."""
    names = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
    return next((os.environ[name] for name in names if os.environ.get(name)), True)


def _keep_queries_out_of_the_log() -> None:
    logger = logging.getLogger(_WIRE_LOG)
    if _without_query not in logger.filters:
        logger.addFilter(_without_query)


def _without_query(record: logging.LogRecord) -> bool:
    """Mask what may be a key in a line about a request of ours."""
    if _sending.get() and isinstance(record.args, tuple):
        record.args = tuple(
            _QUERY.sub(MASK, each) if isinstance(each, str) else each for each in record.args
        )
    return True
