"""Where an OTLP endpoint takes a signal."""

import pytest

from otel_gpu.pipeline.endpoint import LOGS_PATH, METRICS_PATH, SIGNALS, signal_url


@pytest.mark.parametrize("path", SIGNALS)
@pytest.mark.parametrize(
    ("endpoint", "base"),
    [
        ("http://c:4318", "http://c:4318"),
        ("http://c:4318/", "http://c:4318"),
        ("https://c/otlp/", "https://c/otlp"),
        ("https://c/otlp/v1/metrics", "https://c/otlp"),
        ("https://c/otlp/v1/logs", "https://c/otlp"),
    ],
)
def test_an_endpoint_is_the_base_of_all_signals_or_names_one(
    endpoint: str, base: str, path: str
) -> None:
    assert signal_url(endpoint, path) == base + path


def test_a_query_stays_behind_the_path() -> None:
    assert signal_url("https://c/v1/metrics/?key=1", METRICS_PATH) == "https://c/v1/metrics?key=1"
    assert signal_url("https://c/v1/metrics/?key=1", LOGS_PATH) == "https://c/v1/logs?key=1"
