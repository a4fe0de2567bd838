"""What became of a request to an OTLP target: taken, to be sent again, or refused for good.

OTLP specification, "Failures" of OTLP/gRPC and of OTLP/HTTP. Pure: statuses and bytes in, a verdict
out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]  # no types
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # likewise
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from urllib3.exceptions import InvalidHeader
from urllib3.util import Retry

from otel_gpu.config.masks import masked_target
from otel_gpu.pipeline.failure import PASSING_CODES, PASSING_STATUSES

LONGEST_RETRY_S = 600.0
"""A server that asks for more is asked again after this: what it says may be a mistake."""

LONGEST_TEXT = 200
"""Characters of a server's own words that are kept."""

STATUS_TRAILER = "grpc-status-details-bin"


class Taken(NamedTuple):
    """Accepted, but for `rejected` points, for which `text` may give the reason."""

    rejected: int = 0
    text: str = ""


class Later(NamedTuple):
    """Not accepted now. `kind` is the `error.type`; `after_s` is what the server asks to wait."""

    kind: str
    text: str
    after_s: float | None = None


class Refused(NamedTuple):
    """Never accepted, however often it is sent. `kind` is the `error.type`."""

    kind: str
    text: str


Outcome = Taken | Later | Refused


def of_http(status: int, reason: str, headers: Mapping[str, str], body: bytes) -> Outcome:
    """Judge an HTTP answer; header names are matched as the mapping matches them."""
    if 200 <= status < 300:
        return of_body(body)
    if 300 <= status < 400:
        where = masked_target(headers["location"]) if "location" in headers else "nowhere"
        return Refused(str(status), f"{status} {reason}, a redirect to {where}: not followed")
    said = _status(body)
    text = " ".join(filter(None, (f"{status} {reason}".strip(), _words(said, body))))
    if str(status) not in PASSING_STATUSES:
        return Refused(str(status), text)
    after_s = retry_after_s(headers.get("retry-after"))
    return Later(str(status), text, retry_info_s(said) if after_s is None else after_s)


def of_grpc(code: str, details: str, trailers: Iterable[tuple[str, str | bytes]]) -> Outcome:
    """Judge a gRPC failure: the code's name, its words, and the trailing metadata."""
    found = dict(trailers).get(STATUS_TRAILER)
    after_s = retry_info_s(_status(found) if isinstance(found, bytes) else None)
    text = f"{code}: {details[:LONGEST_TEXT]}"
    if code in PASSING_CODES or (code == "RESOURCE_EXHAUSTED" and after_s is not None):
        # A handshake that failed is UNAVAILABLE to gRPC, and only its words tell.
        kind = "SSLError" if "SSL" in details.upper() else code
        return Later(kind, text, after_s)
    return Refused(code, text)


def of_body(body: bytes) -> Taken:
    """Read a success, which may be partial. What is no protobuf is a success all the same."""
    try:
        partial = ExportMetricsServiceResponse.FromString(body).partial_success
    except DecodeError:
        return Taken()  # such as the JSON or the text of a proxy
    return Taken(max(0, partial.rejected_data_points), partial.error_message[:LONGEST_TEXT])


def retry_after_s(header: str | None) -> float | None:
    """Read Retry-After (RFC 9110, section 10.2.3), seconds or a date; None where it has neither."""
    try:
        seconds = Retry().parse_retry_after(header) if header else None
    except InvalidHeader:
        return None
    return None if seconds is None else min(seconds, LONGEST_RETRY_S)


def retry_info_s(status: Status | None) -> float | None:
    """Give the delay of a RetryInfo among a status' details, in seconds."""
    for detail in status.details if status else ():
        info = RetryInfo()
        if detail.Unpack(info):
            delay_s: float = info.retry_delay.ToNanoseconds() / 1e9
            return min(max(0.0, delay_s), LONGEST_RETRY_S)
    return None


def _status(body: bytes) -> Status | None:
    """Read google.rpc.Status, which OTLP puts into the body of a refusal; None where it is none."""
    try:
        status = Status.FromString(body)
    except DecodeError:
        return None
    return status if status.message or status.details else None


def _words(status: Status | None, body: bytes) -> str:
    """Give a server's own words: of its status, or of a body that is text."""
    text = status.message if status else body[: 4 * LONGEST_TEXT].decode(errors="replace")
    words = " ".join(text.split())[:LONGEST_TEXT]
    return words if words.isprintable() else ""
