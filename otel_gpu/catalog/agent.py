"""What the agent tells of itself, on the node's Resource: is it well, and what is missing."""

from __future__ import annotations

from otel_gpu.catalog.profiling import CALL as GPM
from otel_gpu.catalog.profiling import GRAPHICS, Uncovered
from otel_gpu.catalog.reading import supplied
from otel_gpu.model import Kind, Metric, Profile, Query, Tier

WORKER = "the process that holds the driver"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)

NVML_UP = Metric(
    name="otel_gpu.nvml.up",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="1 while the driver library is open and answers, else 0.",
    read=supplied(WORKER),
    profile=Profile.CORE,
    integer=True,
    typical=(1, 1),
    note="Always there.",
)

NVML_HUNG = Metric(
    name="otel_gpu.nvml.hung",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="1 for each call to the driver that did not return within its deadline.",
    read=supplied(WORKER),
    profile=Profile.CORE,
    attributes=("nvidia.nvml.function", "hw.id"),
    integer=True,
    typical=(0, 0),
)

DEVICE_UP = Metric(
    name="otel_gpu.device.up",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="1 while a GPU answers, 0 while it is known and does not.",
    read=supplied("the last sweep, and the GPUs that were seen before"),
    profile=Profile.CORE,
    integer=True,
    on_instance=True,
    typical=(1, 1),
)

READING_MISSING = Metric(
    name="otel_gpu.reading.missing",
    kind=Kind.UPDOWNCOUNTER,
    unit="{reading}",
    brief="Readings that are selected and not published, by metric and reason.",
    read=supplied("the gaps of the last snapshot"),
    profile=Profile.CORE,
    attributes=("otel_gpu.metric", "otel_gpu.reason", "hw.id"),
    integer=True,
    typical=(0, 3),
    note="`unsupported` is summed over the node's GPUs, without hw.id.",
)

SWEEP_DURATION = Metric(
    name="otel_gpu.sweep.duration",
    kind=Kind.HISTOGRAM,
    unit="s",
    brief="Time that a sweep over all GPUs took, from the question to the last answer.",
    read=supplied("the sampler"),
    typical=(0.002, 0.2),
    buckets=SECONDS,
)

SWEEP_AGE = Metric(
    name="otel_gpu.sweep.age",
    kind=Kind.GAUGE,
    unit="s",
    brief="Time since the last sweep that was answered.",
    read=supplied("the sampler"),
    profile=Profile.CORE,
    typical=(0, 2),
)

SWEEP_LATE = Metric(
    name="otel_gpu.sweep.late",
    kind=Kind.COUNTER,
    unit="{sweep}",
    brief="Sweeps that could not begin at their time because the one before was not done.",
    read=supplied("the sampler"),
    integer=True,
    typical=(0, 0),
)

GPM_UNCOVERED_TIME = Metric(
    name="otel_gpu.gpm.uncovered.time",
    kind=Kind.COUNTER,
    unit="s",
    brief="Time between GPM's spans, which is in none of the counters that are made of them.",
    read=Uncovered(Query(GPM, (GRAPHICS,))),
    tier=Tier.FAST,
    typical=(0, 0),
)

WORKER_RESTARTS = Metric(
    name="otel_gpu.worker.restarts",
    kind=Kind.COUNTER,
    unit="{restart}",
    brief="Starts of a new worker process in place of one that hung, died or had an old library.",
    read=supplied(WORKER),
    attributes=("otel_gpu.reason",),
    integer=True,
    typical=(0, 0),
)

CONFIG_RELOADS = Metric(
    name="otel_gpu.config.reloads",
    kind=Kind.COUNTER,
    unit="{reload}",
    brief="Times that the configuration was read again, by outcome: applied, unchanged, refused.",
    read=supplied("the configuration"),
    attributes=("otel_gpu.outcome",),
    integer=True,
    typical=(0, 0),
)

ATTRIBUTION_UP = Metric(
    name="otel_gpu.attribution.up",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="1 while a source of owners can be read, 0 while its last answer is kept.",
    read=supplied("attribution"),
    attributes=("otel_gpu.source", "otel_gpu.reason"),
    integer=True,
    typical=(1, 1),
)

ATTRIBUTION_HELD = Metric(
    name="otel_gpu.attribution.held",
    kind=Kind.GAUGE,
    unit="s",
    brief="Age of the answer of a source of owners that is kept while the source cannot be read.",
    read=supplied("attribution"),
    attributes=("otel_gpu.source",),
    typical=(0, 0),
)

EXPORTED_POINTS = Metric(
    name="otel.sdk.exporter.metric_data_point.exported",
    kind=Kind.COUNTER,
    unit="{data_point}",
    brief="Points whose export ended, without `error.type` when it succeeded.",
    read=supplied("each push part of the pipeline"),
    attributes=("otel.component.name", "error.type"),
    integer=True,
    typical=(1, 100),
)

INFLIGHT_POINTS = Metric(
    name="otel.sdk.exporter.metric_data_point.inflight",
    kind=Kind.UPDOWNCOUNTER,
    unit="{data_point}",
    brief="Points that were collected for a target and wait to be sent, or are being sent.",
    read=supplied("each push part of the pipeline"),
    attributes=("otel.component.name",),
    integer=True,
    typical=(0, 1000),
)

QUEUE_SIZE = Metric(
    name="otel_gpu.queue.size",
    kind=Kind.UPDOWNCOUNTER,
    unit="By",
    brief="What waits to be sent to a target, compressed.",
    read=supplied("each OTLP part of the pipeline"),
    attributes=("otel.component.name",),
    integer=True,
    typical=(0, 50_000),
)

QUEUE_AGE = Metric(
    name="otel_gpu.queue.age",
    kind=Kind.GAUGE,
    unit="s",
    brief="Time since the oldest batch that waits for a target was collected, else 0.",
    read=supplied("each OTLP part of the pipeline"),
    attributes=("otel.component.name",),
    typical=(0, 0),
)

QUEUE_DROPPED = Metric(
    name="otel_gpu.queue.dropped",
    kind=Kind.COUNTER,
    unit="{point}",
    brief="Points that left a queue unsent: it was full, or what lay on disk was damaged.",
    read=supplied("each OTLP part of the pipeline"),
    attributes=("otel.component.name", "otel_gpu.reason"),
    integer=True,
    typical=(0, 0),
    note="Points that a target refused are in `otel.sdk.exporter.metric_data_point.exported`, "
    "with an `error.type`.",
)

SERIES_DROPPED = Metric(
    name="otel_gpu.series.dropped",
    kind=Kind.COUNTER,
    unit="{series}",
    brief="Series that a budget left out of a snapshot, summed over the snapshots collected.",
    read=supplied("the budgets of the configuration"),
    profile=Profile.CORE,
    attributes=("otel_gpu.budget",),
    integer=True,
    typical=(0, 0),
    note="A snapshot counts once, however many readers collect it: while the count grows, "
    "something is left out. `series`: beyond the bound over all metrics; `processes_per_gpu`: "
    "beyond the largest of a GPU, where they are selected. The agent's own series always stay.",
)

LOG_SUPPRESSED = Metric(
    name="otel_gpu.log.suppressed",
    kind=Kind.COUNTER,
    unit="{line}",
    brief="Lines of the log that were not written because their cause wrote too many in a minute.",
    read=supplied("the log"),
    profile=Profile.FULL,
    integer=True,
    typical=(0, 0),
)

EXPORT_DURATION = Metric(
    name="otel.sdk.exporter.operation.duration",
    kind=Kind.HISTOGRAM,
    unit="s",
    brief="Time that an export took, without `error.type` when it succeeded.",
    read=supplied("each push part of the pipeline"),
    attributes=("error.type",),
    typical=(0.002, 0.1),
    buckets=SECONDS,
)

SCRAPE_DURATION = Metric(
    name="otel_gpu.scrape.duration",
    kind=Kind.HISTOGRAM,
    unit="s",
    brief="Time from a scrape's arrival until its body was ready.",
    read=supplied("the Prometheus endpoint"),
    typical=(0.001, 0.05),
    buckets=SECONDS,
)

MEMORY_USAGE = Metric(
    name="process.memory.usage",
    kind=Kind.UPDOWNCOUNTER,
    unit="By",
    brief="Resident memory of the agent and of its worker.",
    read=supplied("/proc/PID/statm"),
    attributes=("otel_gpu.process.role",),
    integer=True,
    typical=(14e6, 75e6),
)

CPU_TIME = Metric(
    name="process.cpu.time",
    kind=Kind.COUNTER,
    unit="s",
    brief="Processor time, user and system, of the agent and of its worker.",
    read=supplied("/proc/PID/stat"),
    attributes=("otel_gpu.process.role",),
    typical=(0, 0.03),
)

BUILD_INFO = Metric(
    name="otel_gpu.build.info",
    kind=Kind.UPDOWNCOUNTER,
    unit="{agent}",
    brief="Always 1, with the versions of the agent, the SDK, NVML, CUDA and the driver.",
    read=supplied("the agent, and the worker once the driver is open"),
    tier=Tier.STATIC,
    profile=Profile.CORE,
    attributes=(
        "service.version",
        "telemetry.sdk.version",
        "nvidia.nvml.version",
        "nvidia.cuda.version",
        "hw.driver_version",
    ),
    integer=True,
    typical=(1, 1),
)

METRICS = (
    NVML_UP,
    NVML_HUNG,
    DEVICE_UP,
    READING_MISSING,
    SWEEP_DURATION,
    SWEEP_AGE,
    SWEEP_LATE,
    GPM_UNCOVERED_TIME,
    WORKER_RESTARTS,
    CONFIG_RELOADS,
    ATTRIBUTION_UP,
    ATTRIBUTION_HELD,
    EXPORTED_POINTS,
    INFLIGHT_POINTS,
    QUEUE_SIZE,
    QUEUE_AGE,
    QUEUE_DROPPED,
    SERIES_DROPPED,
    LOG_SUPPRESSED,
    EXPORT_DURATION,
    SCRAPE_DURATION,
    MEMORY_USAGE,
    CPU_TIME,
    BUILD_INFO,
)
