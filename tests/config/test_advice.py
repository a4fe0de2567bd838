"""What is possible and probably not wanted is a warning, not a fault."""

from __future__ import annotations

import pytest

from .given import Load

OTLP = "pipeline: [otlp: {%s}]"
UNEVEN = "does not divide pipeline[0].otlp.interval"


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        (
            f"sampling: {{fast: 2s}}\n{OTLP % 'interval: 15s'}",
            "2: sampling.fast",
            f"2s {UNEVEN}, 15s: even rates will look uneven",
        ),
        (
            OTLP % "interval: 12s",
            "default: sampling.default",
            f"5s {UNEVEN}, 12s: even rates will look uneven",
        ),
        (
            OTLP % "endpoint: 'http://c:4317'",
            "2: pipeline[0].otlp.endpoint",
            "port 4317 is usually grpc, and protocol is http/protobuf",
        ),
        (
            OTLP % "endpoint: 'http://c:4318', protocol: grpc",
            "2: pipeline[0].otlp.endpoint",
            "port 4318 is usually http/protobuf, and protocol is grpc",
        ),
        (
            OTLP % "endpoint: 'http://c:1', tls: {ca_file: ca.pem}",
            "2: pipeline[0].otlp.tls",
            "is not used: the endpoint is http://, without encryption",
        ),
        (
            "pipeline: [prometheus: {counters_file: a.csv}]",
            "2: pipeline[0].prometheus.counters_file",
            "is not used: names has no dcgm version",
        ),
    ],
)
def test_a_warning_says_where_and_why(text: str, key: str, words: str, loaded: Load) -> None:
    (found,) = loaded(text).warnings
    assert str(found).split("agent.yaml:")[-1] == f"{key}: {words}"


@pytest.mark.parametrize(
    "text",
    [
        OTLP % "interval: 15s",
        f"sampling: {{fast: 300ms}}\n{OTLP % 'interval: 15s'}",
        f"sampling: {{fast: 100ms, default: 100ms}}\n{OTLP % 'interval: 300ms, timeout: 300ms'}",
        f"sampling: {{fast: 20s, default: 20s}}\n{OTLP % 'interval: 15s'}",
        OTLP % "endpoint: 'http://c:4317', protocol: grpc",
        OTLP % "endpoint: 'https://c', tls: {ca_file: ca.pem}",
        "pipeline: [prometheus: {counters_file: a.csv, names: [dcgm-4.9]}]",
    ],
)
def test_what_is_as_it_should_be_is_not_warned_of(text: str, loaded: Load) -> None:
    assert loaded(text).warnings == ()
