"""OTLP push: collect on the node's own beat, encode, queue; a thread of its own delivers."""

from __future__ import annotations

import gzip
import time
from dataclasses import replace
from typing import Any

from opentelemetry.sdk.metrics import (
    Counter,
    Histogram,
    ObservableCounter,
    ObservableGauge,
    ObservableUpDownCounter,
    UpDownCounter,
)
from opentelemetry.sdk.metrics.export import AggregationTemporality, MetricsData

from otel_gpu.config import Otlp
from otel_gpu.config.masks import masked_url
from otel_gpu.exports import ExportStats
from otel_gpu.pipeline import Context
from otel_gpu.pipeline.batch import Batch
from otel_gpu.pipeline.cadence import CadenceReader
from otel_gpu.pipeline.delivery import Delivery
from otel_gpu.pipeline.deltas import Deltas
from otel_gpu.pipeline.encoding import Encoder
from otel_gpu.pipeline.queue import Queue
from otel_gpu.pipeline.spool import Spool
from otel_gpu.pipeline.transport import Renewed, connect, files

GZIP_LEVEL = 6
"""What travels and may lie on a disk: a fifth smaller than level 1, for 4 ms a push more."""

_CUMULATIVE: dict[type, AggregationTemporality] = dict.fromkeys(
    (
        Counter,
        Histogram,
        ObservableCounter,
        ObservableGauge,
        ObservableUpDownCounter,
        UpDownCounter,
    ),
    AggregationTemporality.CUMULATIVE,
)
_GROWTH: dict[type, AggregationTemporality] = dict.fromkeys(
    (Counter, Histogram), AggregationTemporality.DELTA
)

TEMPORALITY = {"cumulative": _CUMULATIVE, "delta": {**_CUMULATIVE, **_GROWTH}}
"""What a target has the SDK aggregate; what is observed becomes growth in `Deltas`.

Every kind of instrument is named, or the SDK would ask the environment, which configuration has
taken into account already.
"""


class OtlpReader(CadenceReader):
    """Collects for one target. Raises ConfigError: a file or the directory cannot be used."""

    def __init__(self, options: Otlp, context: Context) -> None:
        target = f"otlp {masked_url(options.endpoint)}"
        super().__init__(
            interval_s=options.interval,
            node=context.node,
            target=target,
            preferred_temporality=TEMPORALITY[options.temporality],
        )
        self._encoder = Encoder()
        self._deltas = Deltas() if options.temporality == "delta" else None
        transport = Renewed(lambda: connect(options), files(options))
        directory = options.queue.directory
        spool = Spool(directory) if directory else None
        self._delivery = Delivery(
            transport,
            Queue(options.queue.max_bytes, spool),
            interval_s=options.interval,
            target=target,
            record=context.record,
        )
        self.begin()

    @property
    def stats(self) -> ExportStats:
        """What became of the points so far, and what waits."""
        return replace(self._delivery.stats, missed=self.missed)

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Collect and send now; whether all that waited was accepted within the time."""
        deadline_s = time.monotonic() + timeout_millis / 1e3
        failures = self._delivery.failures
        collected = super().force_flush(timeout_millis)
        return collected and self._delivery.flush(failures, deadline_s - time.monotonic())

    def _receive_metrics(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **_: Any
    ) -> None:
        del timeout_millis  # nothing here waits
        now_ns = time.time_ns()
        data = self._deltas.convert(metrics_data) if self._deltas else metrics_data
        before = self._encoder.left_out
        batches = [
            Batch(gzip.compress(body, GZIP_LEVEL, mtime=0), points, now_ns)
            for body, points in self._encoder.encode(data)
        ]
        self._delivery.put(batches, self._encoder.left_out - before)

    def _end(self, timeout_s: float) -> None:
        self._delivery.stop(timeout_s)


def build(options: Otlp, context: Context) -> OtlpReader:
    """Make the reader that pushes to one endpoint. Raises ConfigError."""
    return OtlpReader(options, context)
