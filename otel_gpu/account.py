"""Where each metric that the agent counts itself comes from."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from opentelemetry.sdk.version import __version__ as sdk_version

from otel_gpu import __version__, logs, pulse
from otel_gpu.attribution import Source, allocation, workloads
from otel_gpu.events.watch import Watch
from otel_gpu.exports import ExportStats
from otel_gpu.instruments import Instruments, Supply
from otel_gpu.model import Point
from otel_gpu.sampler import Sampler
from otel_gpu.worker.supervisor import Supervisor


class Parts(Protocol):
    """What the agent is made of, as far as it is counted."""

    driver: Supervisor
    sampler: Sampler
    watch: Watch
    instruments: Instruments

    @property
    def sources(self) -> Sequence[Source]:
        """Where owners of GPUs are looked up."""

    @property
    def reloads(self) -> Mapping[str, int]:
        """How often the configuration was read again, by outcome."""

    @property
    def age_s(self) -> float:
        """Seconds since the driver last answered a sweep."""

    @property
    def exports(self) -> Mapping[str, ExportStats]:
        """What became of the points of each part that pushes, by its name."""


def supplies(agent: Parts) -> Mapping[str, Supply]:
    """Give the points of each metric, by its name; they are looked up when they are asked for."""

    def of_exports(points: Callable[[pulse.Stats], pulse.Points]) -> Supply:
        return lambda _snapshot: points(agent.exports)

    return {
        "nvidia.gpu.allocation": allocation,
        "nvidia.gpu.workload.energy": lambda snapshot: workloads.points(snapshot.energy),
        "nvidia.gpu.workload.time": lambda snapshot: workloads.points(snapshot.held),
        "nvidia.gpu.xid.errors": agent.watch.errors,
        "nvidia.gpu.xid.code.errors": agent.watch.code_errors,
        "otel_gpu.nvml.up": pulse.nvml_up,
        "otel_gpu.nvml.hung": pulse.nvml_hung,
        "otel_gpu.device.up": pulse.device_up,
        "otel_gpu.reading.missing": pulse.reading_missing,
        "otel_gpu.sweep.age": lambda _: [("", Point(agent.age_s))],
        "otel_gpu.sweep.late": lambda _: [("", Point(agent.sampler.late))],
        "otel_gpu.worker.restarts": lambda _: pulse.restarts(agent.driver.restarts),
        "otel_gpu.config.reloads": lambda _: pulse.config_reloads(agent.reloads),
        "otel_gpu.series.dropped": lambda _: pulse.series_dropped(agent.instruments.budget.dropped),
        "otel_gpu.log.suppressed": lambda _: pulse.log_suppressed(logs.suppressed()),
        "otel_gpu.attribution.up": lambda _: pulse.attribution_up(agent.sources),
        "otel_gpu.attribution.held": lambda _: pulse.attribution_held(agent.sources),
        "otel_gpu.build.info": lambda s: pulse.build_info(s, __version__, sdk_version),
        "otel.sdk.exporter.metric_data_point.exported": of_exports(pulse.exported),
        "otel.sdk.exporter.metric_data_point.inflight": of_exports(pulse.inflight),
        "otel_gpu.queue.size": of_exports(pulse.queue_size),
        "otel_gpu.queue.age": of_exports(lambda stats: pulse.queue_age(stats, time.time_ns())),
        "otel_gpu.queue.dropped": of_exports(pulse.queue_dropped),
        "process.memory.usage": lambda _: pulse.memory_usage(agent.driver.usage()),
        "process.cpu.time": lambda _: pulse.cpu_time(agent.driver.usage()),
    }
