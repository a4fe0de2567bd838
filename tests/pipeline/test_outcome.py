"""What a target answers is told apart as OTLP's specification does: taken, later, or never."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]  # no types
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # likewise
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsPartialSuccess,
    ExportMetricsServiceResponse,
)
from requests.structures import CaseInsensitiveDict

from otel_gpu.pipeline.outcome import (
    LONGEST_RETRY_S,
    Later,
    Refused,
    Taken,
    of_grpc,
    of_http,
    retry_after_s,
)


def http(status: int, body: bytes = b"", reason: str = "", **headers: str) -> Any:
    names = {name.replace("_", "-"): text for name, text in headers.items()}
    return of_http(status, reason, CaseInsensitiveDict(names), body)


def asking_for(seconds: float) -> bytes:
    """Give the status of a server that says when to come again."""
    delay = Duration()
    delay.FromNanoseconds(int(seconds * 1e9))
    detail = AnyMessage()
    detail.Pack(RetryInfo(retry_delay=delay))
    body: bytes = Status(code=14, message="busy", details=[detail]).SerializeToString()
    return body


@pytest.mark.parametrize("status", [200, 202, 204])
def test_a_success_takes_every_point(status: int) -> None:
    assert http(status) == Taken()


@pytest.mark.parametrize("body", [b"{}", b"OK\n", b"<html>", b"\xff\xff"])
def test_a_success_whose_body_is_no_protobuf_is_one_all_the_same(body: bytes) -> None:
    assert http(200, body) == Taken()


def test_a_partial_success_tells_how_many_points_were_rejected_and_why() -> None:
    partial = ExportMetricsPartialSuccess(rejected_data_points=3, error_message="too old")
    body = ExportMetricsServiceResponse(partial_success=partial).SerializeToString()

    assert http(200, body) == Taken(3, "too old")


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_these_statuses_may_pass(status: int) -> None:
    assert http(status, reason="Busy") == Later(str(status), f"{status} Busy")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 500, 501, 505])
def test_every_other_status_is_final(status: int) -> None:
    assert isinstance(http(status), Refused)


def test_a_redirect_is_final_and_says_where_to_without_credentials() -> None:
    refused = http(302, reason="Found", Location="http://user:s3cret@elsewhere/v1?key=s3cret")

    assert isinstance(refused, Refused)
    assert refused.kind == "302"
    assert "302 Found, a redirect to http://***@elsewhere/v1" in refused.text
    assert "s3cret" not in refused.text


def test_the_servers_own_words_are_kept_from_a_status_and_from_text() -> None:
    said = Status(code=3, message="out of order").SerializeToString()

    assert http(400, said, "Bad Request").text == "400 Bad Request out of order"
    assert http(400, b"out  of\norder\n", "Bad Request").text == "400 Bad Request out of order"
    assert len(http(400, b"word " * 1_000).text) < 250
    assert http(400, b"\x00\x01", "Bad Request").text == "400 Bad Request"


def test_retry_after_is_honoured_in_seconds_and_as_a_date() -> None:
    in_a_minute = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)

    assert http(503, retry_after="7").after_s == 7
    assert http(429, Retry_After=in_a_minute).after_s == pytest.approx(60, abs=2)


@pytest.mark.parametrize("header", [None, "", "soon", "-1", "1.5"])
def test_a_retry_after_that_cannot_be_read_asks_for_nothing(header: str | None) -> None:
    assert retry_after_s(header) is None


def test_a_server_that_asks_for_hours_is_asked_again_sooner() -> None:
    assert retry_after_s("86400") == LONGEST_RETRY_S
    assert http(503, asking_for(86_400)).after_s == LONGEST_RETRY_S


def test_retry_info_is_honoured_over_http_where_there_is_no_header() -> None:
    assert http(503, asking_for(2.5)).after_s == 2.5
    assert http(503, asking_for(2.5), retry_after="4").after_s == 4


@pytest.mark.parametrize(
    "code",
    ["CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"],
)
def test_these_grpc_codes_may_pass(code: str) -> None:
    assert of_grpc(code, "words", ()) == Later(code, f"{code}: words")


@pytest.mark.parametrize(
    "code", ["UNKNOWN", "INVALID_ARGUMENT", "UNAUTHENTICATED", "PERMISSION_DENIED", "INTERNAL"]
)
def test_every_other_grpc_code_is_final(code: str) -> None:
    assert of_grpc(code, "words", ()) == Refused(code, f"{code}: words")


def test_exhausted_resources_may_pass_only_where_the_server_says_when() -> None:
    assert isinstance(of_grpc("RESOURCE_EXHAUSTED", "", ()), Refused)
    trailers = (("grpc-status-details-bin", asking_for(3)),)
    assert of_grpc("RESOURCE_EXHAUSTED", "", trailers) == Later(
        "RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED: ", 3.0
    )


def test_a_handshake_that_fails_is_told_from_a_server_that_is_gone() -> None:
    words = "failed to connect: Ssl handshake failed: CERTIFICATE_VERIFY_FAILED"
    outcomes: Any = [of_grpc("UNAVAILABLE", text, ()) for text in (words, "connection refused")]
    assert [outcome.kind for outcome in outcomes] == ["SSLError", "UNAVAILABLE"]


@given(st.integers(100, 599), st.binary(max_size=300), st.text(max_size=30))
def test_whatever_is_answered_gives_a_verdict_that_can_be_logged(
    status: int, body: bytes, header: str
) -> None:
    outcome = http(status, body, "Reason", retry_after=header)

    assert isinstance(outcome, Taken) == (200 <= status < 300)
    assert getattr(outcome, "kind", str(status)) == str(status)
    assert str(outcome.text).isprintable()
