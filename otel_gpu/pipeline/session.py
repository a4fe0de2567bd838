"""The HTTP session of an OTLP exporter, which remembers how its last request ended."""

from __future__ import annotations

import re
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import requests

from otel_gpu.config.masks import MASK
from otel_gpu.pipeline.failure import ExportError
from otel_gpu.pipeline.outcome import Later, Outcome, Taken, of_http

_QUERY = re.compile(r"(?<=\?)[^\s()]+")
"""What may be a key, in a URL's path that an exception quotes."""


class Session(requests.Session):
    """A session for an official exporter (its argument `session`); one export at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.outcome: Outcome | None = None

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        """Send, and remember what came of it. Redirects are not followed: a POST would be lost."""
        if isinstance(self.verify, str):  # or REQUESTS_CA_BUNDLE would win over tls.ca_file
            kwargs["verify"] = self.verify
        kwargs["allow_redirects"] = False
        try:
            response = super().send(request, **kwargs)
        except OSError as error:  # RequestException is one; so is a certificate that is not there
            self.outcome = Later(type(error).__name__, _QUERY.sub(MASK, str(_cause(error))))
            raise
        self.outcome = of_http(
            response.status_code, response.reason, response.headers, response.content
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


def _cause(error: OSError) -> object:
    """Give what urllib3 wraps: the error of the socket or of TLS, without the pool's words."""
    wrapped = error.args[0] if error.args else error
    return getattr(wrapped, "reason", None) or wrapped
