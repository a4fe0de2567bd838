"""What a configuration asks for, in the words of those who do it."""

from __future__ import annotations

from collections.abc import Sequence

from otel_gpu.attribution import Source
from otel_gpu.attribution.static import StaticSource
from otel_gpu.budgets.series import Bounds
from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.census import matches, select
from otel_gpu.config import Otlp, Settings
from otel_gpu.instruments import Shape
from otel_gpu.model import Profile
from otel_gpu.sampler import Plan, tiers
from otel_gpu.sweep import intervals


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


def sources(settings: Settings, before: Sequence[Source] = ()) -> tuple[Source, ...]:
    """Give the sources of owners that are configured; those of before that still are, are kept."""
    path = settings.attribution.static
    if path is None:
        return ()
    kept = [one for one in before if isinstance(one, StaticSource) and one.path == path]
    return (kept[0] if kept else StaticSource(path),)


def otlp_parts(settings: Settings) -> list[Otlp]:
    """Give the options of every part that pushes OTLP."""
    return [part.otlp for part in settings.pipeline if part.otlp]


def bounds(settings: Settings) -> Bounds:
    """Say how much is published at most."""
    return Bounds(settings.budgets.series, settings.budgets.processes_per_gpu)


def shape(settings: Settings) -> Shape:
    """Say how identity is spread over Resources and points."""
    return Shape(identity=settings.identity, scope=settings.resource.scope)
