"""Where log records go: to every `otlp` part of the pipeline; without one, to the agent's log."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from threading import Thread
from typing import Any, cast

from opentelemetry.sdk.resources import Resource

from otel_gpu.config import Otlp
from otel_gpu.events.delivery import Batch, Delivery, DeliveryStats
from otel_gpu.events.record import Record, Severity

SCOPE = "otel-gpu"
QUEUE = 2_048  # records; when it is full the oldest is dropped
BATCH = 256
DELAY_S = 1.0  # records of one moment travel together
SHUTDOWN_S = 2.0
GRACE_S = 0.3  # of it, for an exporter to break off what it is doing

LEVELS: Mapping[int, int] = {
    Severity.INFO: logging.INFO,
    Severity.WARN: logging.WARNING,
    Severity.ERROR: logging.ERROR,
    Severity.FATAL: logging.CRITICAL,
}

events = logging.getLogger("otel_gpu.events")


class Outlet:
    """Takes records; never waits for a target. Any thread may write.

    `resource` is the node's. Raises ConfigError when a file that a part names cannot be read.
    """

    def __init__(
        self, parts: Sequence[Otlp], resource: Resource, version: str, *, delay_s: float = DELAY_S
    ) -> None:
        self._resource = resource
        self._delay_s = delay_s
        self._deliveries: dict[str, Delivery] = {}
        self._processors: list[Any] = []
        self._logger: Any = None
        if parts:
            self._open(parts, version)

    @property
    def stats(self) -> Mapping[str, DeliveryStats]:
        """What became of the records of each target."""
        return {name: delivery.stats for name, delivery in self._deliveries.items()}

    def write(self, records: Iterable[Record]) -> None:
        """Queue records for every target, or write each as a line."""
        for record in records:
            if self._logger is None:
                write_line(int(record.severity), record.body, dict(record.attributes))
            else:
                self._emit(self._logger, record, self._resource)

    def shutdown(self, timeout_s: float = SHUTDOWN_S) -> None:
        """Send what is queued, but do not wait longer than this for a target that is gone."""
        deadline_s = time.monotonic() + timeout_s
        for delivery in self._deliveries.values():
            delivery.stop()
        # In threads, because the SDK's own shutdown waits as long as an exporter tries, 10 s.
        ending = [started(processor.shutdown) for processor in self._processors]
        join(ending, deadline_s - min(GRACE_S, timeout_s))
        if any(thread.is_alive() for thread in ending):
            breaking = [started(delivery.shutdown) for delivery in self._deliveries.values()]
            join([*ending, *breaking], deadline_s)

    def _open(self, parts: Sequence[Otlp], version: str) -> None:
        # Late, because who does not push does not load the SDK's logs.
        from opentelemetry._logs import NoOpLogger  # noqa: PLC0415
        from opentelemetry.sdk._logs import LoggerProvider  # noqa: PLC0415
        from opentelemetry.sdk._logs.export import BatchLogRecordProcessor  # noqa: PLC0415

        from otel_gpu.events.otlp import Endpoint, emit  # noqa: PLC0415

        provider = LoggerProvider(self._resource, shutdown_on_exit=False)
        for place, part in enumerate(parts):
            endpoint = Endpoint(part)
            delivery = Delivery(endpoint, write_lines)
            self._deliveries[f"{endpoint.name}/{place}"] = delivery
            processor = BatchLogRecordProcessor(
                cast("Any", delivery),  # its base class has another name in each version
                schedule_delay_millis=self._delay_s * 1_000,
                max_export_batch_size=BATCH,
                export_timeout_millis=part.timeout * 1_000,
                max_queue_size=QUEUE,
            )
            self._processors.append(processor)
            provider.add_log_record_processor(processor)
        self._emit = emit
        logger = provider.get_logger(SCOPE, version, self._resource.schema_url)
        if not isinstance(logger, NoOpLogger):  # OTEL_SDK_DISABLED; then a record is a line
            self._logger = logger


def write_lines(batch: Batch) -> None:
    """Write a line for each of the SDK's records."""
    for one in batch:
        record = one.log_record
        write_line(record.severity_number.value, record.body, record.attributes or {})


def write_line(severity: int, body: str, attributes: Mapping[str, Any]) -> None:
    """Write one line: what the record says, and the kernel's own words, if it has any."""
    original = attributes.get("log.record.original")
    events.log(LEVELS[severity], "%s", f"{body} Kernel: {original}" if original else body)


def started(work: Any) -> Thread:
    """Begin something in a thread that nobody has to wait for."""
    thread = Thread(target=work, daemon=True, name="otel-gpu-events-shutdown")
    thread.start()
    return thread


def join(threads: Iterable[Thread], deadline_s: float) -> None:
    """Wait for threads until a monotonic second."""
    for thread in threads:
        thread.join(max(0.0, deadline_s - time.monotonic()))
