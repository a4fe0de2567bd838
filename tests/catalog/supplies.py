"""What the agent counts itself, each with the attributes that it may have; and owners of GPUs."""

from functools import partial

from otel_gpu import pulse
from otel_gpu.attribution import Claims, Health, View, allocation, workloads
from otel_gpu.events import points
from otel_gpu.events.tally import Count, Tally
from otel_gpu.exports import Backlog, ExportStats
from otel_gpu.instruments import Supply
from otel_gpu.model import Owner
from otel_gpu.usage import Usage
from tests.catalog.world import HOPPER, NOW_NS

POD = Owner(
    (
        ("k8s.namespace.name", "research"),
        ("k8s.pod.name", "train-0"),
        ("k8s.container.name", "main"),
        ("container.id", "4f1c"),
    ),
    resource=(("k8s.pod.uid", "7f6c"),),
)
JOB = Owner((("slurm.job.id", 17), ("slurm.user", "ada"), ("slurm.partition", "h200")))

XIDS = Tally(since_ns=NOW_NS, counts={(HOPPER.uuid, 31): Count(first_s=0.0, last_s=0.0)})


class Unread:
    """A source that cannot be read, and says why."""

    def claims(self, _view: View) -> Claims:
        return Claims()

    def health(self) -> Health:
        return Health("static", up=False, reason="invalid", detail="line 1: no", held_s=7.0)

    def close(self) -> None:
        """Hold nothing."""


WAITING = Backlog(4096, 2, 1400, 10_000_000_000, {"full": 30})
EXPORTS = {"otlp/0": ExportStats(5, 1400, {"503": 3}, backlog=WAITING)}

SUPPLIES: dict[str, Supply] = {
    "nvidia.gpu.allocation": allocation,
    "nvidia.gpu.workload.energy": lambda snapshot: workloads.points(snapshot.energy),
    "nvidia.gpu.workload.time": lambda snapshot: workloads.points(snapshot.held),
    "otel_gpu.nvml.up": pulse.nvml_up,
    "otel_gpu.nvml.hung": pulse.nvml_hung,
    "otel_gpu.device.up": pulse.device_up,
    "otel_gpu.reading.missing": pulse.reading_missing,
    "nvidia.gpu.xid.errors": partial(points.errors, XIDS),
    "nvidia.gpu.xid.code.errors": partial(points.code_errors, XIDS),
    "otel_gpu.worker.restarts": lambda _: pulse.restarts({"hung": 1}),
    "otel_gpu.config.reloads": lambda _: pulse.config_reloads({"applied": 1}),
    "otel_gpu.series.dropped": lambda _: pulse.series_dropped({"series": 0}),
    "otel_gpu.log.suppressed": lambda _: pulse.log_suppressed(3),
    "otel_gpu.attribution.up": lambda _: pulse.attribution_up([Unread()]),
    "otel_gpu.attribution.held": lambda _: pulse.attribution_held([Unread()]),
    "otel_gpu.build.info": lambda snapshot: pulse.build_info(snapshot, "1", "2"),
    "otel.sdk.exporter.metric_data_point.exported": lambda _: pulse.exported(EXPORTS),
    "otel.sdk.exporter.metric_data_point.inflight": lambda _: pulse.inflight(EXPORTS),
    "otel_gpu.queue.size": lambda _: pulse.queue_size(EXPORTS),
    "otel_gpu.queue.age": lambda _: pulse.queue_age(EXPORTS, 12_000_000_000),
    "otel_gpu.queue.dropped": lambda _: pulse.queue_dropped(EXPORTS),
    "process.memory.usage": lambda _: pulse.memory_usage(Usage(1.0, 4096)),
    "process.cpu.time": lambda _: pulse.cpu_time(Usage(1.0, 4096)),
}
