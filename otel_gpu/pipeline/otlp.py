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
from opentelemetry.sdk.metrics.export import AggregationTemporality, MetricReader, MetricsData

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

LEAVE_S = 1.0
"""What an attempt that is under way gets, when a successor takes the queue over."""

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
    """Collects for one target. Raises ConfigError: a file or the directory cannot be used.

    What waits in the queue of a predecessor with the same directory (or, like it, none) becomes
    this one's when it hands over.
    """

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
        self.directory = options.queue.directory
        self._max_bytes = options.queue.max_bytes
        transport = Renewed(lambda: connect(options), files(options))
        shared = queue_of(context.predecessor, options)
        self.queue = shared or queue(options)
        self._delivery = Delivery(
            transport,
            self.queue,
            interval_s=options.interval,
            target=target,
            record=context.record,
        )
        if not shared:
            self._delivery.begin()
        self.begin()

    def hand_over(self, successor: MetricReader) -> None:
        """Let the successor send what waits, from now on."""
        if isinstance(successor, OtlpReader) and successor.queue is self.queue:
            self._delivery.leave(LEAVE_S)
            successor.take_over()

    def take_over(self) -> None:
        """Send what waits in the predecessor's queue."""
        self.queue.resize(self._max_bytes)
        self._delivery.begin()

    @property
    def stats(self) -> ExportStats:
        """What became of the points so far, and what waits."""
        return replace(self._delivery.stats, missed=self.missed)

    def ailment(self) -> str | None:
        """Say what does not move: the cadence, or the delivery; a target that is down may be."""
        ended = not self._delivery.is_alive
        return "the thread that delivers has ended" if ended else super().ailment()

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


def queue_of(predecessor: MetricReader | None, options: Otlp) -> Queue | None:
    """Give the queue of a predecessor, if a reader with these options goes on with it."""
    if not isinstance(predecessor, OtlpReader):
        return None
    same = predecessor.directory == options.queue.directory
    return predecessor.queue if same else None


def queue(options: Otlp) -> Queue:
    """Open the queue of a target. Raises ConfigError: the directory cannot be used."""
    directory = options.queue.directory
    return Queue(options.queue.max_bytes, Spool(directory) if directory else None)


def build(options: Otlp, context: Context) -> OtlpReader:
    """Make the reader that pushes to one endpoint. Raises ConfigError."""
    return OtlpReader(options, context)
