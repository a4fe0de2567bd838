"""What a client accepts: which notation, and whether gzip (RFC 9110, section 12.5)."""

from __future__ import annotations

from collections.abc import Iterator

from otel_gpu.pipeline.exposition import Format

_OPENMETRICS = "application/openmetrics-text"
_TEXT = frozenset({"text/plain", "text/*", "*/*"})


def notation(accept: str) -> Format:
    """Choose OpenMetrics where a client likes it at least as much as the text format.

    Whoever names neither gets the text format: a page is of more use to it than an error.
    """
    openmetrics = text = 0.0
    for name, parameters, quality in _preferences(accept):
        # Version 0.0.1 was never OpenMetrics as it was published.
        if name == _OPENMETRICS and parameters.get("version", "1.0.0") != "0.0.1":
            openmetrics = max(openmetrics, quality)
        elif name in _TEXT:
            text = max(text, quality)
    return Format.OPENMETRICS if openmetrics and openmetrics >= text else Format.TEXT


def takes_gzip(accept_encoding: str) -> bool:
    """Whether a body may be compressed with gzip."""
    qualities = {name: quality for name, _, quality in _preferences(accept_encoding)}
    return qualities.get("gzip", qualities.get("*", 0.0)) > 0


def _preferences(header: str) -> Iterator[tuple[str, dict[str, str], float]]:
    """Give the entries of an Accept header: name, parameters, quality; what is malformed is 0."""
    for entry in header.split(","):
        name, *rest = (part.strip().lower() for part in entry.split(";"))
        parameters = dict(part.split("=", 1) for part in rest if "=" in part)
        yield name, parameters, _quality(parameters.get("q", "1"))


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
