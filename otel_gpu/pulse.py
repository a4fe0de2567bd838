"""The agent's own points: is it well, what is missing, and what does it cost."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from otel_gpu.attribution import Health, Source
from otel_gpu.exports import Backlog, ExportStats
from otel_gpu.model import Attributes, Point, Reason, Snapshot
from otel_gpu.usage import Usage, usage

Points = Iterable[tuple[str, Point]]
Stats = Mapping[str, ExportStats]
"""What became of the points of each target, by its `otel.component.name`."""


def nvml_up(snapshot: Snapshot) -> Points:
    """1 while the driver is open, else 0: always there, so that an alert can tell."""
    yield "", Point(int(not snapshot.trouble))


def nvml_hung(snapshot: Snapshot) -> Points:
    """Give one point for each call that did not come back."""
    known = ((call, uuid if uuid in snapshot.devices else "") for call, uuid in snapshot.hung)
    for function, uuid in dict.fromkeys(known):
        yield uuid, Point(1, (("nvidia.nvml.function", function),))


def device_up(snapshot: Snapshot) -> Points:
    """Give 1 or 0 for each GPU that was ever seen."""
    for uuid, up in snapshot.up.items():
        yield uuid, Point(int(up))


def reading_missing(snapshot: Snapshot) -> Points:
    """Count the gaps by metric and reason; what is unsupported is summed over the node."""
    counts = Counter(
        (
            "" if gap.missing.reason is Reason.UNSUPPORTED else gap.device,
            gap.metric,
            str(gap.missing.reason),
        )
        for gap in snapshot.gaps
    )
    for (uuid, metric, reason), count in counts.items():
        key: Attributes = (("otel_gpu.metric", metric), ("otel_gpu.reason", reason))
        yield uuid, Point(count, key)


def restarts(counts: Mapping[str, int]) -> Points:
    """Give how often a worker was replaced, by reason."""
    for reason, count in counts.items():
        yield "", Point(count, (("otel_gpu.reason", reason),))


def series_dropped(counts: Mapping[str, int]) -> Points:
    """Give the series that were left out, by budget."""
    for budget, count in counts.items():
        yield "", Point(count, (("otel_gpu.budget", budget),))


def log_suppressed(lines: int) -> Points:
    """Give the lines of the log that were not written."""
    yield "", Point(lines)


def config_reloads(counts: Mapping[str, int]) -> Points:
    """Give how often the configuration was read again, by what became of it."""
    for outcome, count in counts.items():
        yield "", Point(count, (("otel_gpu.outcome", str(outcome)),))


def attribution_up(sources: Iterable[Source]) -> Points:
    """Give 1 for each source of owners that can be read, else 0 and why."""
    for health in _awake(sources):
        reason: Attributes = (("otel_gpu.reason", health.reason),) if health.reason else ()
        yield "", Point(int(health.up), (("otel_gpu.source", health.name), *reason))


def attribution_held(sources: Iterable[Source]) -> Points:
    """Give the age of each answer that is kept because its source cannot be read."""
    for health in _awake(sources):
        if health.held_s is not None:
            yield "", Point(health.held_s, (("otel_gpu.source", health.name),))


def _awake(sources: Iterable[Source]) -> Iterator[Health]:
    healths = [source.health() for source in sources]
    return (health for health in healths if not health.dormant)


def build_info(snapshot: Snapshot, version: str, sdk_version: str) -> Points:
    """Give 1, with the versions that are known."""
    versions = {
        "service.version": version,
        "telemetry.sdk.version": sdk_version,
        "nvidia.nvml.version": snapshot.system.nvml_version,
        "nvidia.cuda.version": snapshot.system.cuda_version,
        "hw.driver_version": snapshot.system.driver_version,
    }
    yield "", Point(1, tuple((key, value) for key, value in versions.items() if value))


def exported(stats: Stats) -> Points:
    """Give the points that each target took, and those that failed by `error.type`."""
    for target, one in _targets(stats):
        yield "", Point(one.exported, target)
        for kind, count in one.failed.items():
            yield "", Point(count, (*target, ("error.type", kind)))


def inflight(stats: Stats) -> Points:
    """Give the points that wait for each target, or are on their way."""
    for target, one in _targets(stats):
        yield "", Point(one.inflight, target)


def queue_size(stats: Stats) -> Points:
    """Give the bytes that each queue holds."""
    for target, backlog in _backlogs(stats):
        yield "", Point(backlog.size_bytes, target)


def queue_age(stats: Stats, now_ns: int) -> Points:
    """Give how long ago the oldest batch of each queue was collected, in seconds."""
    for target, backlog in _backlogs(stats):
        since_ns = now_ns if backlog.oldest_ns is None else backlog.oldest_ns
        yield "", Point(max(0.0, (now_ns - since_ns) / 1e9), target)


def queue_dropped(stats: Stats) -> Points:
    """Give the points that each queue lost, by reason."""
    for target, backlog in _backlogs(stats):
        for reason, points in backlog.dropped.items():
            yield "", Point(points, (*target, ("otel_gpu.reason", reason)))


def _targets(stats: Stats) -> Iterable[tuple[Attributes, ExportStats]]:
    return (((("otel.component.name", name),), one) for name, one in stats.items())


def _backlogs(stats: Stats) -> Iterable[tuple[Attributes, Backlog]]:
    return ((target, one.backlog) for target, one in _targets(stats) if one.backlog)


def memory_usage(worker: Usage | None) -> Points:
    """Give the resident memory of the agent, and of its worker while there is one."""
    for role, used in roles(worker):
        yield "", Point(used.rss_bytes, (("otel_gpu.process.role", role),))


def cpu_time(worker: Usage | None) -> Points:
    """Give the processor time of the agent, and of its worker while there is one."""
    for role, used in roles(worker):
        yield "", Point(used.cpu_s, (("otel_gpu.process.role", role),))


def roles(worker: Usage | None) -> Iterable[tuple[str, Usage]]:
    """Pair each process with its role."""
    for role, used in (("agent", usage(os.getpid())), ("worker", worker)):
        if used:
            yield role, used
