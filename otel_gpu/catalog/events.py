"""What happened to a GPU: Xid errors, counted as they come."""

from __future__ import annotations

from otel_gpu.catalog.reading import supplied
from otel_gpu.model import Kind, Metric, Profile, Tier

ORIGIN = "events of the driver (`nvmlEventSetWait_v2`) and lines of the kernel log, as one"

XID_ERRORS = Metric(
    name="nvidia.gpu.xid.errors",
    kind=Kind.COUNTER,
    unit="{error}",
    brief="Xid errors since the agent began, by how far they reach.",
    read=supplied(ORIGIN),
    tier=Tier.EVENT,
    profile=Profile.CORE,
    attributes=("nvidia.gpu.xid.class",),
    integer=True,
    typical=(0, 0),
    note="Always there, from 0. node: hands or a reboot are needed; reset: the GPU needs a reset; "
    "link: look at NVLink or the link to the CPU; application: a program failed, the GPU is well; "
    "info: nothing that stops work. A MIG instance's stand on its GPU.",
)

XID_CODE_ERRORS = Metric(
    name="nvidia.gpu.xid.code.errors",
    kind=Kind.COUNTER,
    unit="{error}",
    brief="Xid errors since the agent began, by code.",
    read=supplied(ORIGIN),
    tier=Tier.EVENT,
    profile=Profile.CORE,
    attributes=("nvidia.gpu.xid",),
    integer=True,
    typical=(0, 0),
    note="A code that comes for the first time is shown as 0 for 65 s and then as its count, so "
    "that `increase()` sees it. To know at once, read nvidia.gpu.xid.errors or the log record.",
)

METRICS = (XID_ERRORS, XID_CODE_ERRORS)
