"""The settings: every key of agent.yaml, its default and its meaning.

The texts under the fields are the documentation: the shipped file, the reference and the JSON
schema are made from them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from otel_gpu.config.faults import KeyPath, RuleError
from otel_gpu.config.fields import (
    Attributes,
    Count,
    Gpus,
    Idle,
    Interval,
    Location,
    Number,
    Section,
    Switch,
    Text,
    Tiers,
    Window,
    Words,
)
from otel_gpu.config.parts import Part, Prometheus, clashes
from otel_gpu.config.values import format_duration


class Sampling(Section):
    """How often the driver is asked. Intervals that divide the push interval give even rates."""

    fast: Interval = 1.0
    """Utilization, power, clocks, temperature, memory in use. At least 100ms."""

    default: Interval = 5.0
    """Energy, errors and what else is counted. At least fast."""

    slow: Interval = 60.0
    """Limits, link states, modes and health details. At least default."""

    power_window: Window = 15.0
    """Span over which the highest and lowest power are taken, from 1s to 600s."""

    @model_validator(mode="after")
    def _in_order(self) -> Sampling:
        pairs = (("fast", "default"), ("default", "slow"))
        if wrong := [words for pair in pairs if (words := self._swapped(*pair))]:
            raise RuleError(*wrong)
        return self

    def _swapped(self, quick: str, slow: str) -> tuple[KeyPath, str] | None:
        """Judge two tiers; the words stand at the key that was given, not at a default."""
        less, more = getattr(self, quick), getattr(self, slow)
        if less <= more:
            return None
        short, long = format_duration(more), format_duration(less)
        if quick in self.model_fields_set:
            return (quick,), f"{long} is over sampling.{slow}, which is {short}"
        return (slow,), f"{short} is under sampling.{quick}, which is {long}"


class Metrics(Section):
    """Which metrics are read, and how often single ones are."""

    profile: Literal["none", "core", "standard", "full"] = "standard"
    """How much: core, standard (about 80 series a GPU) or full; none is for a list of your own."""

    enable: Words = ()
    """Globs of metrics to read beyond the profile, such as nvidia.gpu.process.*."""

    disable: Words = ()
    """Globs of metrics to leave out, whatever else asks for them."""

    tiers: Tiers = Field(default={})
    """Intervals of single metrics by glob, such as {nvidia.gpu.nvlink.*: 10s}. At least 100ms."""


class Budgets(Section):
    """Bounds on what is published. What they leave out is counted (otel_gpu.series.dropped)."""

    processes_per_gpu: Count = 20
    """Processes of a GPU with series of their own, the largest first. The memory of the rest is one
    series."""

    series: Number = 20_000
    """Series of the whole agent. Beyond it first processes are left out, then whole metrics: those
    of the larger profiles first, the agent's own never."""


class GpuChoice(Section):
    """Which GPUs are read."""

    include: Gpus = "all"
    """all, or a list of indices, UUIDs and PCI addresses, such as [0, GPU-..., 0000:3b:00.0]."""

    mig: Literal["instances", "gpus", "both"] = "both"
    """On a GPU in MIG mode: its instances, the gpus as a whole, or both."""

    release_idle: Idle | None = None
    """Let all GPUs go when no process has used one for so long, such as 5m, so that they can sleep;
    they are taken back when another process opens one. null: never. Needs the PID namespace of the
    host, where processes are seen."""


class Resource(Section):
    """How telemetry is attached to OpenTelemetry Resources."""

    scope: Literal["gpu", "node"] = "gpu"
    """gpu: one for each GPU, and for each GPU and workload. node: one for all of them."""

    attributes: Attributes = Field(default={})
    """Added to every Resource, such as {k8s.cluster.name: east}. OTEL_RESOURCE_ATTRIBUTES and
    OTEL_SERVICE_NAME add those that are not here."""


PodOwner = Literal["deployment", "replicaset", "statefulset", "daemonset", "job"]


class Attribution(Section):
    """Whose GPU it is: where owners are looked up."""

    kubernetes: Switch = "auto"
    """Pods, from the kubelet's PodResources socket: auto (on a node of Kubernetes), on or off."""

    slurm: Switch = "auto"
    """Slurm jobs, from the cgroups of the processes on a GPU and job_mapping_dir: auto, on, off."""

    container: Switch = "auto"
    """Containers, from the cgroups of the processes on a GPU: auto, on or off."""

    static: Location | None = None
    """File that says who owns which GPU; null: none."""

    pod_resources_socket: Location = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
    """The kubelet's PodResources socket."""

    resource_names: Words = ()
    """Names of Kubernetes resources that are GPUs, where the device plugin gives its own."""

    pod_labels: Words = ()
    """Labels of the pod to put on its points, by name; a name may be a glob. Asks the API of
    Kubernetes: the service account must be allowed to list and watch pods."""

    pod_owners: tuple[PodOwner, ...] = ()
    """Kinds of what made a pod to put on its points, such as [deployment, job], by the API too:
    deployment, replicaset, statefulset, daemonset or job."""

    job_mapping_dir: Location | None = None
    """Directory with a file for each GPU that names its Slurm jobs, as a prolog writes it for
    dcgm-exporter; null: none."""


class Events(Section):
    """What is reported when it happens, as a metric and as a log record."""

    xid: bool = True
    """Xid errors, as the driver reports them."""

    kernel_log: Switch = "auto"
    """The kernel's own text of an Xid: auto (where its log can be read), on or off."""


class Telemetry(Section):
    """Names, and the agent's own log (on standard error)."""

    semconv: Annotated[
        Literal["1.44"],
        BeforeValidator(lambda value: f"{value}" if isinstance(value, float) else value),
        WithJsonSchema({"enum": ["1.44", 1.44]}),
    ] = "1.44"
    """Version of OpenTelemetry's semantic conventions that the names follow."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """debug, info (one line when something changes), warning or error."""

    log_format: Literal["auto", "text", "json"] = "auto"
    """auto (text on a terminal, else JSON), text or json."""


def _version(value: Any) -> Any:
    if isinstance(value, bool) or value not in (1, "1"):
        raise ValueError("is not a version that this otel-gpu reads; the only one is 1")
    return 1


def _backend(value: str) -> str:
    name, colon, rest = value.partition(":")
    if name == "recorded" and not rest:
        raise ValueError("names no recording; write recorded:FILE")
    if name not in ("nvml", "simulated", "recorded") or (name == "nvml" and colon):
        raise ValueError("is none of nvml, simulated, simulated:SPEC, recorded:FILE")
    return value


def _ways_out(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    if not parts:
        raise RuleError(((), "has no part, so nothing would leave; the default is prometheus: {}"))
    if found := clashes(parts):
        raise RuleError(*found)
    return parts


class Settings(Section):
    """The agent's configuration."""

    version: Annotated[Literal[1], BeforeValidator(_version)] = 1
    """Version of this file's format; the only one is 1."""

    backend: Annotated[Text, AfterValidator(_backend)] = "nvml"
    """Where readings come from: nvml (the driver), simulated[:SPEC] (GPUs that are made up, for
    trying things out) or recorded:FILE (another machine's, see `otel-gpu record`)."""

    sampling: Sampling = Sampling()
    metrics: Metrics = Metrics()
    budgets: Budgets = Budgets()
    gpus: GpuChoice = GpuChoice()

    identity: Literal["minimal", "full"] = "minimal"
    """What every point says of its GPU: minimal (hw.id, hw.name) or full (also model, serial,
    driver)."""

    resource: Resource = Resource()
    attribution: Attribution = Attribution()
    events: Events = Events()

    pipeline: Annotated[
        tuple[Part, ...],
        BeforeValidator(lambda value: () if value is None else value),
        AfterValidator(_ways_out),
    ] = (Part(prometheus=Prometheus()),)
    """The ways out, as many as you like, several of a kind too. Each is one key with its options;
    installed packages may bring more (entry points of the group `otel_gpu.pipeline`)."""

    telemetry: Telemetry = Telemetry()
