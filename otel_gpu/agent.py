"""The agent: wires the worker, the sampler, the provider and the pipeline, and ends them in order.

Nothing is decided here that another room could decide. The threads are: the sampler's, one for each
part of the pipeline, and whoever calls `run`, which only waits.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from opentelemetry.metrics import Histogram
from opentelemetry.sdk.metrics.export import MetricReader
from opentelemetry.sdk.version import __version__ as sdk_version

from otel_gpu import __version__, pulse
from otel_gpu.attribution import Source, allocation
from otel_gpu.attribution.static import StaticSource
from otel_gpu.availability import demand
from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.census import matches, select
from otel_gpu.config import Settings
from otel_gpu.document import document
from otel_gpu.events.export import Outlet
from otel_gpu.events.watch import Watch, kernel_log
from otel_gpu.exports import ExportStats
from otel_gpu.instruments import Instruments, Shape, Supply
from otel_gpu.model import NODE, Attributes, ConfigError, Point, Profile, Snapshot
from otel_gpu.news import news
from otel_gpu.pipeline import Context, load
from otel_gpu.pipeline.cadence import CadenceReader
from otel_gpu.provider import MeterProvider
from otel_gpu.resources import SCHEMA_URL, Resources, node
from otel_gpu.sampler import Plan, Sampler, tiers
from otel_gpu.sweep import intervals
from otel_gpu.worker.supervisor import Supervisor

SHUTDOWN_S = 3.0  # for the last push; with the rest, the agent is gone within 5 s of a SIGTERM
LATE_S = 30.0  # the sampler's loop ticks every second; a deadline of the driver's is 5 s

log = logging.getLogger(__name__)


def plan(settings: Settings) -> Plan:
    """Say what these settings read, of which GPUs and how often."""
    metrics = select(
        CATALOG,
        Profile[settings.metrics.profile.upper()],
        settings.metrics.enable,
        settings.metrics.disable,
    )

    def override(name: str) -> float | None:
        seconds = [every for glob, every in settings.metrics.tiers.items() if matches(name, [glob])]
        return seconds[-1] if seconds else None

    sampling = settings.sampling
    every = intervals(metrics, tiers(sampling.fast, sampling.default, sampling.slow), override)
    return Plan(
        metrics=metrics,
        every=every,
        window_s=sampling.power_window,
        include=settings.gpus.include,
        mig=settings.gpus.mig,
    )


def sources(settings: Settings) -> tuple[Source, ...]:
    """Make the sources of owners that are configured."""
    path = settings.attribution.static
    return (StaticSource(path),) if path else ()


class Agent:
    """One agent of one configuration. `start` it, `stop` it; in between it runs by itself.

    Raises ConfigError when a part of the pipeline cannot work as configured.
    """

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        demand(settings)
        self.settings = settings
        self.driver = Supervisor(settings.backend)
        self._stop = threading.Event()
        self._fresh = threading.Event()
        self._open = threading.Event()  # every way out
        self._histograms: Mapping[str, Histogram] = {}
        self._sources = sources(settings)
        planned = plan(settings)
        self.sampler = Sampler(
            self.driver, planned, sources=self._sources, on_sweep=self._sweep_done
        )
        self._attributes = node(environ, settings.resource.attributes, __version__)
        self._resources = Resources(self._attributes, self.snapshot)
        self.watch = Watch(
            Outlet(
                [part.otlp for part in settings.pipeline if part.otlp],
                self._resources(NODE),
                __version__,
            ),
            kernel_log(settings.events.kernel_log) if settings.events.xid else None,
            xid=settings.events.xid,
        )
        self.instruments = Instruments(
            planned.metrics,
            self.snapshot,
            every=planned.every,
            supplies=self._supplies(),
            shape=Shape(identity=settings.identity, scope=settings.resource.scope),
        )
        self._thread = threading.Thread(target=self._sample, name="sampler", daemon=True)
        self._ticked_s = time.monotonic()
        self.readers: Mapping[str, MetricReader] = {}
        self.provider = MeterProvider((), self._resources, shutdown_on_exit=False)

    def snapshot(self) -> Snapshot:
        """Give what was published last."""
        return self.sampler.snapshot

    def start(self) -> None:
        """Begin to sample, and open the ways out. Raises ConfigError."""
        meter = self.provider.get_meter("otel-gpu", __version__, SCHEMA_URL)
        self._histograms = self.instruments.register(meter)
        self._thread.start()
        try:
            for name, reader in self._parts():
                self.readers = {**self.readers, name: reader}  # others are looking at it
                self.provider.add_metric_reader(reader)
            self._open.set()
        except ConfigError:
            self.stop()
            raise

    def wait_for_sweep(self, timeout_s: float) -> bool:
        """Wait until the first sweep was tried; whether it was in time."""
        return self._fresh.wait(timeout_s)

    def stop(self) -> None:
        """Send what is not sent, close the ways out, release the driver. Within 5 s in any case."""
        self._stop.set()
        self.driver.interrupt()
        self._thread.join(1.0)
        ending = threading.Thread(target=self.watch.close, args=(self.snapshot(),), daemon=True)
        ending.start()  # both ways of pushing end at the same time
        self.provider.shutdown(timeout_millis=SHUTDOWN_S * 1000)
        ending.join(SHUTDOWN_S)
        self.driver.close()

    def _parts(self) -> Iterable[tuple[str, MetricReader]]:
        context = Context(
            version=__version__,
            node=str(self._attributes.get("k8s.node.name") or self._attributes["host.name"]),
            snapshot=self.snapshot,
            resource=lambda: self._resources(NODE),
            status=self.status,
            healthy=self.unhealthy,
            ready=self.unready,
            fresh=self.stale,
            record=self.record,
        )
        for place, part in enumerate(self.settings.pipeline):
            yield f"{part.name}/{place}", load(part.name)(part.options, context)

    def record(self, metric: str, value: float, attributes: Attributes) -> None:
        """Take a value of one of the agent's own histograms, if the configuration has it."""
        histogram = self._histograms.get(metric)
        if histogram:
            histogram.record(value, dict(attributes))

    def unhealthy(self) -> str | None:
        """Say what is wrong with the agent's own loops; the GPUs' health is not theirs."""
        quiet_s = time.monotonic() - self._ticked_s
        if quiet_s > LATE_S and not self.driver.trouble:
            return f"the sampler has not moved for {quiet_s:.0f} s"
        return None

    def unready(self) -> str | None:
        """Say why the agent does not serve yet."""
        if not self._open.is_set():
            return "the pipeline is not open"
        return None if self._fresh.is_set() else "the first sweep is not done"

    def stale(self) -> str | None:
        """Say why there are no fresh readings."""
        snapshot = self.snapshot()
        if snapshot.trouble:
            return snapshot.trouble
        down = [uuid for uuid, up in snapshot.up.items() if not up]
        return f"no answer from {', '.join(down)}" if down else None

    def status(self) -> Mapping[str, Any]:
        """Give the state of everything, for /debug/status."""
        return {
            "version": __version__,
            "driver": {
                "trouble": self.snapshot().trouble or None,
                "restarts": dict(self.driver.restarts),
                "generation": self.driver.generation,
            },
            "sampler": {"late": self.sampler.late, "age_s": self._age_s()},
            "attribution": [source.health()._asdict() for source in self._sources],
            "pipeline": {name: asdict(stats) for name, stats in self._export_stats().items()},
            "machine": document(self.snapshot()),
        }

    def _sample(self) -> None:
        while not self._stop.is_set():
            before = self.snapshot()
            generation = self.driver.generation
            try:
                self.sampler.step()
                self.watch.turn(self.sampler.told(), self.snapshot(), time.monotonic())
            except Exception:
                # Nothing that the driver answers may end the loop; the next turn starts afresh.
                log.exception("a sweep failed")
            if self.driver.generation != generation:
                self.provider.forget_resources()
            for level, line in news(before, self.snapshot()):
                log.log(level, line)
            self._ticked_s = time.monotonic()
            self._fresh.set()
            self._stop.wait(self.sampler.pause_s())

    def _sweep_done(self, seconds: float) -> None:
        self.record("otel_gpu.sweep.duration", seconds, ())

    def _age_s(self) -> float:
        return time.monotonic() - self.sampler.swept_s

    def _export_stats(self) -> Mapping[str, ExportStats]:
        """Give what became of the points of each part that pushes."""
        return {
            name: reader.stats
            for name, reader in self.readers.items()
            if isinstance(reader, CadenceReader)
        }

    def _of_exports(self, points: Callable[[pulse.Stats], pulse.Points]) -> Supply:
        return lambda _snapshot: points(self._export_stats())

    def _supplies(self) -> Mapping[str, Supply]:
        """Say where each metric that the agent counts itself comes from."""
        return {
            "nvidia.gpu.allocation": allocation,
            "nvidia.gpu.xid.errors": self.watch.errors,
            "nvidia.gpu.xid.code.errors": self.watch.code_errors,
            "otel_gpu.nvml.up": pulse.nvml_up,
            "otel_gpu.nvml.hung": pulse.nvml_hung,
            "otel_gpu.device.up": pulse.device_up,
            "otel_gpu.reading.missing": pulse.reading_missing,
            "otel_gpu.sweep.age": lambda _: [("", Point(self._age_s()))],
            "otel_gpu.sweep.late": lambda _: [("", Point(self.sampler.late))],
            "otel_gpu.worker.restarts": lambda _: pulse.restarts(self.driver.restarts),
            "otel_gpu.attribution.up": lambda _: pulse.attribution_up(self._sources),
            "otel_gpu.build.info": lambda s: pulse.build_info(s, __version__, sdk_version),
            "otel.sdk.exporter.metric_data_point.exported": self._of_exports(pulse.exported),
            "otel.sdk.exporter.metric_data_point.inflight": self._of_exports(pulse.inflight),
            "otel_gpu.queue.size": self._of_exports(pulse.queue_size),
            "otel_gpu.queue.age": self._of_exports(
                lambda stats: pulse.queue_age(stats, time.time_ns())
            ),
            "otel_gpu.queue.dropped": self._of_exports(pulse.queue_dropped),
            "process.memory.usage": lambda _: pulse.memory_usage(self.driver.usage()),
            "process.cpu.time": lambda _: pulse.cpu_time(self.driver.usage()),
        }
