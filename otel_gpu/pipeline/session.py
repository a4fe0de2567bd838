"""The HTTP session of an OTLP exporter, which remembers how its last request ended."""

from __future__ import annotations

import re
from typing import Any

import requests

from otel_gpu.config.masks import MASK, masked_url
from otel_gpu.pipeline.cadence import ExportError

_QUERY = re.compile(r"(?<=\?)[^\s()]+")
"""What may be a key, in a URL's path that an exception quotes."""


class Session(requests.Session):
    """A session for `OTLPMetricExporter(session=...)`; one export at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._failure: ExportError | None = None

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        """Send, and remember what did not work."""
        if isinstance(self.verify, str):  # or REQUESTS_CA_BUNDLE would win over tls.ca_file
            kwargs["verify"] = self.verify
        try:
            response = super().send(request, **kwargs)
        except requests.RequestException as error:
            self._failure = ExportError(type(error).__name__, _QUERY.sub(MASK, str(error)))
            raise
        status = response.status_code
        accepted = 200 <= status < 300  # a redirect is none: a POST is not sent again
        self._failure = None if accepted else ExportError(str(status), _text(response))
        return response

    def failure(self) -> ExportError | None:
        """Give, once, why the last request failed; None when it did not, or there was none."""
        failure, self._failure = self._failure, None
        return failure


def _text(response: requests.Response) -> str:
    text = f"{response.status_code} {response.reason}"
    location = response.headers.get("location")
    return f"{text}, to {masked_url(location)}" if location else text
