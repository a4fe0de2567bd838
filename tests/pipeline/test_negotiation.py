"""Clients get the notation and the encoding that they ask for."""

from __future__ import annotations

import pytest

from otel_gpu.pipeline.exposition import Format
from otel_gpu.pipeline.negotiation import notation, takes_gzip

PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Format.TEXT),
        ("*/*", Format.TEXT),
        (BROWSER, Format.TEXT),
        (PROMETHEUS_3, Format.OPENMETRICS),
        (PROMETHEUS_2, Format.OPENMETRICS),
        ("application/openmetrics-text", Format.OPENMETRICS),
        ("Application/OpenMetrics-Text; Version=1.0.0", Format.OPENMETRICS),
        ("application/openmetrics-text;version=0.0.1", Format.TEXT),
        ("text/plain;version=0.0.4;q=0.5, application/openmetrics-text;q=0.4", Format.TEXT),
        ("application/openmetrics-text;q=0, */*", Format.TEXT),
        ("application/openmetrics-text;q=much", Format.TEXT),
        ("application/json", Format.TEXT),
        (";;,,;q=,", Format.TEXT),
    ],
)
def test_the_notation_is_what_the_client_likes_best(accept: str, form: Format) -> None:
    assert notation(accept) is form


@pytest.mark.parametrize(
    ("accept_encoding", "gzip"),
    [
        ("", False),
        ("gzip", True),
        ("deflate, gzip;q=0.5, br", True),
        ("GZIP", True),
        ("gzip;q=0", False),
        ("gzip;q=0, *", False),
        ("*", True),
        ("*;q=0", False),
        ("identity", False),
    ],
)
def test_a_body_is_compressed_for_who_takes_it(accept_encoding: str, *, gzip: bool) -> None:
    assert takes_gzip(accept_encoding) is gzip
