"""What the official exporters say in their logs, kept for whoever exports and out of the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LOGGERS = (
    "opentelemetry.exporter.otlp.proto.http.metric_exporter",
    "opentelemetry.exporter.otlp.proto.http._log_exporter",
    "opentelemetry.exporter.otlp.proto.grpc.exporter",
)

_said: ContextVar[list[str] | None] = ContextVar("said", default=None)


@contextmanager
def overhearing() -> Iterator[list[str]]:
    """Give a list that takes what is said inside the block, by this thread only."""
    for name in LOGGERS:
        filters = logging.getLogger(name).filters
        if _overhear not in filters:
            filters.insert(0, _overhear)  # before gRPC's, which drops a reason said before
    said: list[str] = []
    token = _said.set(said)
    try:
        yield said
    finally:
        _said.reset(token)


def _overhear(record: logging.LogRecord) -> bool:
    """Take a record out of the log, where it was made during an export of ours."""
    said = _said.get()
    if said is None:
        return True
    said.append(record.getMessage())
    return False
