"""What a configuration asks for, in the words of those who do it."""

from __future__ import annotations

from otel_gpu.attribution.choosing import looks_at_processes
from otel_gpu.budgets.series import Bounds
from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.census import matches, select
from otel_gpu.catalog.power import ENERGY
from otel_gpu.catalog.processes import PROCESS_MEMORY, PROCESS_UTILIZATION
from otel_gpu.config import Otlp, Settings
from otel_gpu.instruments import Shape
from otel_gpu.model import Metric, Profile
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
    inward = [metric for metric in attributing(settings) if metric not in metrics]
    seconds = tiers(sampling.fast, sampling.default, sampling.slow)
    every = dict(intervals((*metrics, *inward), seconds, override))
    if PROCESS_UTILIZATION in inward:  # or energy would be divided by how it was five seconds ago
        every[PROCESS_UTILIZATION.name] = sampling.fast
    return Plan(
        metrics=metrics,
        every=every,
        inward=tuple(inward),
        when_shared=frozenset({PROCESS_UTILIZATION.name} & {metric.name for metric in inward}),
        window_s=sampling.power_window,
        include=settings.gpus.include,
        mig=settings.gpus.mig,
    )


def attributing(settings: Settings) -> tuple[Metric, ...]:
    """Give the metrics that attribution looks at, be they shown or not."""
    if looks_at_processes(settings):
        return (ENERGY, PROCESS_MEMORY, PROCESS_UTILIZATION)
    return (ENERGY,) if settings.attribution.static else ()


def otlp_parts(settings: Settings) -> list[Otlp]:
    """Give the options of every part that pushes OTLP."""
    return [part.otlp for part in settings.pipeline if part.otlp]


def bounds(settings: Settings) -> Bounds:
    """Say how much is published at most."""
    return Bounds(settings.budgets.series, settings.budgets.processes_per_gpu)


def shape(settings: Settings) -> Shape:
    """Say how identity is spread over Resources and points."""
    return Shape(identity=settings.identity, scope=settings.resource.scope)
