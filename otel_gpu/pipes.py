"""The pipeline as it runs: which part has which reader, and how one set is exchanged for another.

An exchange is prepared in full before anything that runs is touched, so that a part that cannot
work refuses the whole configuration. Parts whose options did not change keep their readers, and
with them their connections, queues and ports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from opentelemetry.sdk.metrics.export import MetricReader

from otel_gpu.config import Part
from otel_gpu.pipeline import Context, HandsOver, Vital, load
from otel_gpu.provider import MeterProvider

END_MS = 3_000.0
"""What a reader gets to send its last collection when its part is gone."""

ABANDON_MS = 100.0


@dataclass(frozen=True, slots=True)
class Pipe:
    """A part of the pipeline and its reader, under the name that telemetry has for it."""

    name: str
    part: Part
    reader: MetricReader


@dataclass(frozen=True, slots=True)
class Exchange:
    """What will run, and of it what is new: with the pipe that it takes the place of, if any."""

    pipes: tuple[Pipe, ...]
    new: tuple[tuple[Pipe, Pipe | None], ...]


class Pipes:
    """The pipes of one provider. One thread makes exchanges; any thread may look at `running`."""

    def __init__(self, provider: MeterProvider, context: Context) -> None:
        self.running: tuple[Pipe, ...] = ()  # replaced, never changed
        self._provider = provider
        self._context = context
        self._numbers: dict[str, count[int]] = {}

    @property
    def readers(self) -> Mapping[str, MetricReader]:
        """The readers by name: that of the part, and a number that none had before."""
        return {pipe.name: pipe.reader for pipe in self.running}

    def ailment(self) -> str | None:
        """Say in one sentence which reader's own loops do not move, if one does."""
        for pipe in self.running:
            ailment = pipe.reader.ailment() if isinstance(pipe.reader, Vital) else None
            if ailment:
                return f"{pipe.name}: {ailment}"
        return None

    def prepare(self, parts: Sequence[Part]) -> Exchange:
        """Make what these parts need and is not there. Raises ConfigError: all is as before."""
        places = matched(parts, self.running)
        new: list[tuple[Pipe, Pipe | None]] = []
        pipes: list[Pipe] = []
        try:
            for part, (before, kept) in zip(parts, places, strict=True):
                if kept and before:
                    pipes.append(before)
                    continue
                made = self._made(part, before)
                pipes.append(made)
                new.append((made, before))
        except BaseException:
            self.abandon(Exchange((), tuple(new)))
            raise
        return Exchange(tuple(pipes), tuple(new))

    def abandon(self, exchange: Exchange) -> None:
        """Undo a preparation."""
        for pipe, _ in exchange.new:
            pipe.reader.shutdown(timeout_millis=ABANDON_MS)

    def commit(self, exchange: Exchange) -> None:
        """Let what was prepared run, then end what is not in it: nobody is without a reader."""
        ended = [pipe for pipe in self.running if pipe not in exchange.pipes]
        for pipe, before in exchange.new:
            self._provider.add_metric_reader(pipe.reader)
            if before and isinstance(before.reader, HandsOver):
                before.reader.hand_over(pipe.reader)
        self.running = exchange.pipes
        for pipe in ended:
            self._provider.remove_metric_reader(pipe.reader, timeout_millis=END_MS)

    def _made(self, part: Part, before: Pipe | None) -> Pipe:
        context = replace(self._context, predecessor=before.reader if before else None)
        reader = load(part.name)(part.options, context)
        number = next(self._numbers.setdefault(part.name, count()))
        return Pipe(f"{part.name}/{number}", part, reader)


def matched(parts: Sequence[Part], running: Sequence[Pipe]) -> list[tuple[Pipe | None, bool]]:
    """Give each part the pipe that it continues, and whether that stays as it is.

    First the parts that did not change are found, then of the others those that want the same
    address, queue directory or file, then those with the same endpoint, then those of the same
    name, in order.
    """
    free = list(running)
    found: dict[int, tuple[Pipe, bool]] = {}
    for alike in (_same, _rivals, _fellows, _namesakes):
        for place, part in enumerate(parts):
            pipe = next((one for one in free if alike(part, one.part)), None)
            if place not in found and pipe:
                found[place] = pipe, alike is _same
                free.remove(pipe)
    return [found.get(place, (None, False)) for place in range(len(parts))]


def _same(part: Part, other: Part) -> bool:
    return part == other


def _rivals(part: Part, other: Part) -> bool:
    return not part.exclusive.isdisjoint(other.exclusive)


def _fellows(part: Part, other: Part) -> bool:
    endpoint = getattr(part.options, "endpoint", None)
    return endpoint is not None and endpoint == getattr(other.options, "endpoint", None)


def _namesakes(part: Part, other: Part) -> bool:
    return part.name == other.name
