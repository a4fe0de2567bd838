"""Why an export failed: the official exporters say so only in their log, at each attempt."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData

from otel_gpu.pipeline.cadence import ExportError
from otel_gpu.pipeline.overhearing import overhearing

_CODE = re.compile(r"StatusCode\.(\w+)")
_RETRY = re.compile(r",? retrying in [\d.]+s\b\.?")


class ExplainedExporter(MetricExporter):
    """An official OTLP exporter that raises ExportError, with the reason, where it failed.

    What it logs during an export is kept out of the log: the reader says once that a target fails,
    and once that it is back. `transport` knows, where there is one, how the last request failed: a
    redirect, too, which the official HTTP exporter counts as a success.
    """

    def __init__(
        self,
        exporter: MetricExporter,
        transport: Callable[[], ExportError | None] = lambda: None,
    ) -> None:
        super().__init__(
            exporter._preferred_temporality,  # noqa: SLF001 - preferences have no public name
            exporter._preferred_aggregation,  # noqa: SLF001 - likewise
        )
        self._exporter = exporter
        self._transport = transport

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any
    ) -> MetricExportResult:
        """Export, or raise ExportError."""
        with overhearing() as said:
            try:
                result = self._exporter.export(metrics_data, timeout_millis, **kwargs)
            except Exception as error:
                raise self._transport() or error from error  # older exporters raise some failures
        failure = self._transport()
        if failure is None and result is not MetricExportResult.SUCCESS:
            failure = explained(said)
        if failure is not None:
            raise failure
        return result

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Pass on."""
        return self._exporter.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        """Pass on."""
        self._exporter.shutdown(timeout_millis, **kwargs)


def explained(said: Sequence[str]) -> ExportError:
    """Make an error of what was said: its kind is the gRPC status, or `_OTHER`.

    The last but one sentence names the cause, where the last says that it gave up.
    """
    code = _CODE.search(" ".join(said))
    text = _RETRY.sub("", said[-2:][0]) if said else "the exporter gave no reason"
    return ExportError(code[1] if code else "_OTHER", text)
