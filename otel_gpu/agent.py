"""The agent: wires the worker, the sampler, the provider and the pipeline, and ends them in order.

Nothing is decided here that another room could decide. The threads are: the sampler's, one for each
part of the pipeline, and whoever calls `run`, which only waits.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from queue import SimpleQueue
from typing import Any

from opentelemetry.metrics import Histogram
from opentelemetry.sdk.resources import Resource

from otel_gpu import __version__
from otel_gpu.account import supplies
from otel_gpu.attribution.choosing import chosen
from otel_gpu.availability import demand
from otel_gpu.change import Change, Outcome, hears, idling, outlet, waiting
from otel_gpu.config import Settings
from otel_gpu.control import Reply
from otel_gpu.document import document
from otel_gpu.events.export import Outlet
from otel_gpu.events.watch import Watch
from otel_gpu.exports import ExportStats
from otel_gpu.idling import processes
from otel_gpu.instruments import Instruments
from otel_gpu.model import (
    NODE,
    Attributes,
    AttributeValue,
    ConfigError,
    ResourceKey,
    Snapshot,
)
from otel_gpu.news import news
from otel_gpu.pipeline import Context
from otel_gpu.pipeline.cadence import CadenceReader
from otel_gpu.pipes import Pipes
from otel_gpu.planning import bounds, otlp_parts, plan, shape
from otel_gpu.provider import MeterProvider
from otel_gpu.resources import SCHEMA_URL, Resources, node
from otel_gpu.sampler import Sampler
from otel_gpu.worker.holding import held
from otel_gpu.worker.supervisor import Supervisor

SHUTDOWN_S = 3.0  # for the last push; with the rest, the agent is gone within 5 s of a SIGTERM
ADOPT_S = 10.0  # a driver that hangs may take longer; then the change waits for it
RELEASE_S = 30.0  # a hung worker is gone after a few seconds, or is said to be stuck
FIRST_S = 5.0  # for the first sweep, so that who comes when the agent is ready finds readings
LATE_S = 30.0  # the sampler's loop ticks every second; a deadline of the driver's is 5 s

log = logging.getLogger(__name__)


class Agent:
    """One agent of one configuration. `start` it, `stop` it; in between it runs by itself.

    Raises ConfigError when a part of the pipeline cannot work as configured.
    """

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        demand(settings)
        self.settings = settings
        self.driver = Supervisor(settings.backend)
        self.reloads: Counter[str] = Counter({str(outcome): 0 for outcome in Outcome})
        self._environ = environ
        self._stop = threading.Event()
        self._wake = threading.Event()  # the sampler's thread has something to do
        self._fresh = threading.Event()
        self._open = threading.Event()  # every way out
        self._changes: SimpleQueue[Change] = SimpleQueue()
        self._refusal = ""
        self._histograms: Mapping[str, Histogram] = {}
        planned = plan(settings)
        self._attributes = node(environ, settings.resource.attributes, __version__)
        self.sources = chosen(settings, environ, self._attributes)
        self.sampler = Sampler(
            self.driver,
            planned,
            sources=self.sources,
            on_sweep=lambda s: self.record("otel_gpu.sweep.duration", s, ()),
        )
        self._resources = Resources(self._attributes, self.snapshot)
        self.watch = Watch(
            outlet(settings, self._resources(NODE)), hears(settings), xid=settings.events.xid
        )
        self.instruments = Instruments(
            planned.metrics,
            self.snapshot,
            every=planned.every,
            supplies=supplies(self),
            shape=shape(settings),
            bounds=bounds(settings),
        )
        self._idling = idling(settings)
        self._quiesced = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="sampler", daemon=True)
        self._started_s = self._ticked_s = time.monotonic()
        self.provider = MeterProvider((), self._resource, shutdown_on_exit=False)
        self.pipes = Pipes(self.provider, self._context())

    def snapshot(self) -> Snapshot:
        """Give what was published last."""
        return self.sampler.snapshot

    def start(self) -> None:
        """Begin to sample, and open the ways out. Raises ConfigError."""
        self._histograms = self._register()
        self._thread.start()
        try:
            self.pipes.commit(self.pipes.prepare(self.settings.pipeline))
            self._open.set()
        except ConfigError:
            self.stop()
            raise

    def wait_for_sweep(self, timeout_s: float) -> bool:
        """Wait until the first sweep was tried; whether it was in time."""
        return self._fresh.wait(timeout_s)

    def reload(self, read: Callable[[], Settings]) -> Outcome:
        """Take over what `read` gives, whole or not at all. For one thread, the one that waits.

        What did not change goes on: readers, queues, ports, counts, series. Whatever is wrong is
        logged, and the configuration before stays in force.
        """
        try:
            settings = read()
            outcome = Outcome.UNCHANGED
            if settings != self.settings:
                self._exchange(settings)
                outcome = Outcome.APPLIED
            self._refusal = ""
            log.info("the configuration was read again: %s", outcome)
        except ConfigError as error:
            outcome, self._refusal = Outcome.REFUSED, str(error)
            for fault in str(error).splitlines():
                log.error("%s", fault)  # noqa: TRY400 - the file is wrong; where in our code that showed helps nobody
            log.error("the configuration is refused; the one before stays in force")  # noqa: TRY400 - likewise
        except Exception as error:  # what a third party's part raises must not end the agent
            outcome, self._refusal = Outcome.REFUSED, f"{type(error).__name__}: {error}"
            log.exception("the configuration is refused; the one before stays in force")
        self.reloads[outcome] += 1
        return outcome

    def quiesce(self) -> Reply:
        """Let every device go, for a driver upgrade, a reset or a change of MIG instances."""
        self._quiesced.set()
        self.driver.release("the GPUs are released, as otel-gpu quiesce asked")
        self._wake.set()
        if not self.driver.wait_until_free(RELEASE_S):
            return Reply(ok=False, text=f"the GPUs were not released within {RELEASE_S:g} s")
        holders = held([os.getpid(), *self.driver.abandoned])
        if not holders:
            return Reply(ok=True, text="released: the agent has no device file open")
        named = "; ".join(f"process {pid} holds {' '.join(held)}" for pid, held in holders.items())
        text = f"{named}: the kernel keeps it in a driver call, and only a reboot is sure to end it"
        return Reply(ok=False, text=text)

    def resume(self) -> Reply:
        """Take the GPUs back."""
        self._quiesced.clear()
        self.driver.resume()
        self._wake.set()
        return Reply(ok=True, text="the GPUs are taken back")

    def stop(self) -> None:
        """Send what is not sent, close the ways out, release the driver. Within 5 s in any case."""
        self._stop.set()
        self._wake.set()
        self.driver.interrupt()
        self._thread.join(1.0)
        ending = threading.Thread(target=self.watch.close, args=(self.snapshot(),), daemon=True)
        ending.start()  # both ways of pushing end at the same time
        self.provider.shutdown(timeout_millis=SHUTDOWN_S * 1000)
        ending.join(SHUTDOWN_S)
        for source in self.sources:
            source.close()
        self.driver.close()

    def _exchange(self, settings: Settings) -> None:
        """Prepare all that can fail, then exchange. Raises ConfigError: all is as before."""
        demand(settings)
        if settings.backend != self.settings.backend:
            raise ConfigError("backend: cannot change while the agent runs; restart it")
        attributes = node(self._environ, settings.resource.attributes, __version__)
        exchange = self.pipes.prepare(settings.pipeline)
        try:
            change = Change(
                settings=settings,
                plan=plan(settings),
                attributes=attributes,
                outlet=self._outlet(settings, attributes),
                relisten=settings.events != self.settings.events,
            )
        except BaseException:
            self.pipes.abandon(exchange)
            raise
        self._changes.put(change)
        self._wake.set()
        self.pipes.commit(exchange)
        self.settings = settings
        # So that the log tells of it when it is so, unless the driver hangs.
        change.done.wait(ADOPT_S)

    def _outlet(
        self, settings: Settings, attributes: Mapping[str, AttributeValue]
    ) -> Outlet | None:
        """Make the outlet of log records, if another is needed. Raises ConfigError."""
        resource = Resources(attributes, self.snapshot)(NODE)
        before = otlp_parts(self.settings), self._resources(NODE)
        return outlet(settings, resource) if (otlp_parts(settings), resource) != before else None

    def _adopt(self, change: Change) -> None:
        """Follow another configuration from the next sweep on; the sampler's thread does this."""
        settings = change.settings
        self.sources = chosen(settings, self._environ, change.attributes, self.sources)
        self.sampler.adopt(change.plan, self.sources)
        if change.outlet:
            self.watch.write_to(change.outlet)
        self._idling = idling(settings)
        if change.relisten:
            self.watch.listen_to(hears(settings), xid=settings.events.xid)
        self._resources = Resources(change.attributes, self.snapshot)

    def _show(self, change: Change) -> None:
        """Publish what another configuration asks for, now that it was read."""
        self.instruments.adopt(
            change.plan.metrics,
            every=change.plan.every,
            shape=shape(change.settings),
            bounds=bounds(change.settings),
        )
        self._histograms = self._register()
        self.provider.forget_resources()
        change.done.set()

    def _resource(self, key: ResourceKey) -> Resource:
        """Make the Resource of a key; after a reload it may be another."""
        return self._resources(key)

    def _register(self) -> Mapping[str, Histogram]:
        meter = self.provider.get_meter("otel-gpu", __version__, SCHEMA_URL)
        return self.instruments.register(meter)

    def _context(self) -> Context:
        return Context(
            version=__version__,
            node=str(self._attributes.get("k8s.node.name") or self._attributes["host.name"]),
            snapshot=self.snapshot,
            resource=lambda: self._resource(NODE),
            status=self.status,
            healthy=self.unhealthy,
            ready=self.unready,
            fresh=self.stale,
            record=self.record,
        )

    def record(self, metric: str, value: float, attributes: Attributes) -> None:
        """Take a value of one of the agent's own histograms, if the configuration has it."""
        histogram = self._histograms.get(metric)
        if histogram:
            histogram.record(value, dict(attributes))

    def unhealthy(self) -> str | None:
        """Say what is wrong with the agent's own loops; the GPUs' health is not theirs."""
        quiet_s = time.monotonic() - self._ticked_s
        if quiet_s > LATE_S and not self.driver.waiting:
            return f"the sampler has not moved for {quiet_s:.0f} s"
        return self.pipes.ailment()

    def unready(self) -> str | None:
        """Say why the agent does not serve yet; a driver that hangs delays that by seconds only."""
        if not self._open.is_set():
            return "the pipeline is not open"
        waited = time.monotonic() - self._started_s > FIRST_S
        return None if waited or self._fresh.is_set() else "the first sweep is not done"

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
            "configuration": {"reloads": dict(self.reloads), "refused": self._refusal or None},
            "driver": {
                "trouble": self.snapshot().trouble or None,
                "restarts": dict(self.driver.restarts),
                "generation": self.driver.generation,
                "hung": [
                    {"function": call, "gpu": uuid, "for_s": round(time.monotonic() - since_s, 1)}
                    for call, uuid, since_s in self.driver.hung
                ],
                "abandoned": list(self.driver.abandoned),
            },
            "sampler": {"late": self.sampler.late, "age_s": self.age_s},
            "attribution": [source.health()._asdict() for source in self.sources],
            "pipeline": {name: asdict(stats) for name, stats in self.exports.items()},
            "machine": document(self.snapshot()),
        }

    def _sample(self) -> None:
        while not self._stop.is_set():
            before, generation = self.snapshot(), self.driver.generation
            try:
                self._turn(list(waiting(self._changes)))
            except Exception:
                # Nothing that the driver answers may end the loop; the next turn starts afresh.
                log.exception("a sweep failed")
            if self.driver.generation != generation:
                self.provider.forget_resources()
            for level, line in news(before, self.snapshot()):
                log.log(level, line)
            self._ticked_s = time.monotonic()
            self._fresh.set()
            self._wake.wait(self.sampler.pause_s())
            self._wake.clear()

    def _turn(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self._adopt(change)
        self.sampler.step()
        for change in changes:
            self._show(change)
        self.watch.turn(self.sampler.told(), self.snapshot(), time.monotonic())
        self._idle()

    def _idle(self) -> None:
        """Let the GPUs go while nobody uses them, if the configuration asks for that."""
        if self._quiesced.is_set():  # a person's word stands
            self._idling = idling(self.settings)
            return
        advice = self._idling and self._idling.advise(processes(self.snapshot()), time.monotonic())
        if advice == "release":
            self.driver.release("the GPUs are released, as no process has used one for a while")
        elif advice == "resume":
            self.driver.resume()

    @property
    def age_s(self) -> float:
        """Seconds since the driver last answered a sweep."""
        return time.monotonic() - self.sampler.swept_s

    @property
    def exports(self) -> Mapping[str, ExportStats]:
        """What became of the points of each part that pushes, by its name."""
        return {
            name: reader.stats
            for name, reader in self.pipes.readers.items()
            if isinstance(reader, CadenceReader)
        }
