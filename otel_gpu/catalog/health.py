"""Whether a GPU is well, and the modes that it is in."""

from __future__ import annotations

from typing import NamedTuple

from otel_gpu.catalog.errors import BANKS, SRAM
from otel_gpu.catalog.forms import Values
from otel_gpu.catalog.judging import Judging, Known, one_of, told
from otel_gpu.catalog.nvlink import FABRIC, checked
from otel_gpu.catalog.reading import FIELD, asking, call
from otel_gpu.catalog.shape import whole
from otel_gpu.model import Device, Kind, Metric, Missing, Point, Profile, Query, Read, Reason, Tier

GPU = (("hw.type", "gpu"),)
RECOVERY = Query(FIELD, (230, 0))
REMAP_PENDING, REMAP_FAILED = Query(FIELD, (144, 0)), Query(FIELD, (145, 0))
REPAIR = Query("nvmlDeviceGetRepairStatus")
UNREPAIRABLE = Query("nvmlDeviceGetUnrepairableMemoryFlag_v1")

ACTIONS = {
    0: "none",
    1: "gpu_reset",
    2: "node_reboot",
    3: "drain_p2p",
    4: "drain_and_reset",
    5: "recover_imex_domain",
    6: "bus_reset",
    7: "system_reboot",
}
"""nvml.h, nvmlDeviceGpuRecoveryAction_t."""

STATES = {name: name for name in ("ok", "degraded", "predicted_failure", "failed")}
COMPUTE_MODES = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}
ECC_MODE, MIG_MODE = Query("nvmlDeviceGetEccMode"), Query("nvmlDeviceGetMigMode")
COMPUTE_MODE = Query("nvmlDeviceGetComputeMode")
LICENCES = Query("nvmlDeviceGetGridLicensableFeatures")
UNKNOWN_FEATURE = 0  # nvml.h, nvmlGridLicenseFeatureCode_t


FAILED, PREDICTED, DEGRADED = "failed", "predicted_failure", "degraded"

ASKED_FOR = {
    1: (FAILED, "the driver asks for a reset of the GPU"),
    2: (FAILED, "the driver asks for a reboot of the node"),
    3: (DEGRADED, "the driver asks to drain its peer-to-peer traffic"),
    4: (FAILED, "the driver asks to drain the GPU and reset it"),
    5: (DEGRADED, "the driver asks to recover its IMEX domain"),
    6: (FAILED, "the driver asks for a reset of its bus"),
    7: (FAILED, "the driver asks for a reboot of the system"),
}
"""What each recovery action says of a GPU; one that is not here is a degradation by its number."""

FINDINGS: tuple[tuple[str, Query, tuple[str | int, ...], str], ...] = (
    (PREDICTED, REMAP_FAILED, (), "a row of its memory could not be remapped"),
    (PREDICTED, BANKS, ("none",), "a bank of its memory has no spare rows"),
    (PREDICTED, SRAM, ("bThresholdExceeded",), "its SRAM has had too many errors"),
    (PREDICTED, UNREPAIRABLE, (), "its memory is beyond repair"),
    (DEGRADED, REMAP_PENDING, (), "a row remap waits for a reset of the GPU"),
    (DEGRADED, REPAIR, (0,), "a repair of its memory waits for a reset of the GPU"),
    (DEGRADED, REPAIR, (1,), "a repair of its memory waits for a reset of the GPU"),
)
"""What is wrong with a GPU that says yes to a question."""

RANK = (FAILED, PREDICTED, DEGRADED)


class Cause(NamedTuple):
    """Why a GPU is in a state other than ok."""

    state: str
    words: str


def causes(known: Known) -> list[Cause]:
    """Say what is wrong with a GPU that answers, the gravest first."""
    found = [
        Cause(state, words) for state, query, path, words in FINDINGS if told(known, query, *path)
    ]
    if action := int(told(known, RECOVERY)):
        asked_for = (DEGRADED, f"the driver asks for recovery action {action}")
        found.append(Cause(*ASKED_FOR.get(action, asked_for)))
    faults = checked(int(told(known, FABRIC, "healthMask")))
    found += [Cause(DEGRADED, f"its fabric has a fault: {name}") for name in faults if faults[name]]
    return sorted(dict.fromkeys(found), key=lambda cause: RANK.index(cause.state))


def state(known: Known) -> str:
    """Judge what is known of a GPU that answers, the gravest first."""
    found = causes(known)
    return found[0].state if found else "ok"


def status(known: Known) -> list[Point]:
    """Give a point for each state; exactly one is 1."""
    return one_of("hw.state", STATES, state(known))


def recovery(_device: Device, values: Values) -> list[Point] | Missing:
    """Say what the driver asks to be done with the GPU."""
    return one_of("nvidia.gpu.recovery.action", ACTIONS, whole(values, RECOVERY))


def compute_mode(_device: Device, values: Values) -> list[Point] | Missing:
    """Say who may use the GPU for compute."""
    return one_of("nvidia.gpu.compute_mode.state", COMPUTE_MODES, whole(values, COMPUTE_MODE))


def change_pending(query: Query) -> Read:
    """Read whether a mode is another after the next reset."""

    def points(_device: Device, values: Values) -> list[Point] | Missing:
        return [Point(int(whole(values, query, 0) != whole(values, query, 1)))]

    return asking((query,), points)


def licensed(_device: Device, values: Values) -> list[Point] | Missing:
    """Say whether a virtual GPU has its licence."""
    if not whole(values, LICENCES, "isGridLicenseSupported"):
        return Missing(Reason.UNSUPPORTED, f"{LICENCES}: this is no virtual GPU")
    features = [
        (
            whole(values, LICENCES, "gridLicensableFeatures", place, "featureCode"),
            whole(values, LICENCES, "gridLicensableFeatures", place, "featureState"),
        )
        for place in range(whole(values, LICENCES, "licensableFeaturesCount"))
    ]
    return [Point(int(any(state and code != UNKNOWN_FEATURE for code, state in features)))]


STATUS = Metric(
    name="hw.status",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="1 for the state of health that the GPU is in, 0 for the others.",
    read=Judging(
        asked=(RECOVERY, REMAP_FAILED, REMAP_PENDING),
        seldom=(BANKS, SRAM, UNREPAIRABLE, REPAIR, FABRIC),
        function=status,
        lost=tuple(one_of("hw.state", STATES, "failed")),
    ),
    profile=Profile.CORE,
    attributes=("hw.state",),
    constant=GPU,
    integer=True,
    typical=(0, 1),
    note="failed: lost, or the driver asks for a reset, a reboot or a drain with reset. "
    "predicted_failure: a row could not be remapped, a bank has no spare rows, too many SRAM "
    "errors, or damage beyond repair. degraded: a remap or repair waits for a reset, the fabric "
    "has a fault, or another recovery action is asked for. ok: none of this is known. Where the "
    "driver tells nothing of it, there is no state.",
)

RECOVERY_STATUS = Metric(
    name="nvidia.gpu.recovery.status",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="1 for what the driver asks to be done with the GPU, 0 for the rest.",
    read=asking((RECOVERY,), recovery),
    profile=Profile.FULL,
    attributes=("nvidia.gpu.recovery.action",),
    integer=True,
    typical=(0, 1),
    note="`hw.status` says in every profile whether the driver asks for something.",
)

PERSISTENCE = Metric(
    name="nvidia.gpu.persistence.enabled",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="1 when the driver keeps the GPU initialised while nobody uses it, else 0.",
    read=call("nvmlDeviceGetPersistenceMode"),
    tier=Tier.SLOW,
    integer=True,
    typical=(1, 1),
)

ECC_ENABLED = Metric(
    name="nvidia.gpu.ecc.enabled",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="1 when errors of memory are found and corrected, else 0.",
    read=call(ECC_MODE.call, path=(0,)),
    tier=Tier.SLOW,
    integer=True,
    typical=(1, 1),
)

MIG_ENABLED = Metric(
    name="nvidia.gpu.mig.enabled",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="1 when the GPU is divided into instances, else 0.",
    read=call(MIG_MODE.call, path=(0,)),
    tier=Tier.SLOW,
    integer=True,
    typical=(0, 0),
)

ECC_CHANGE_PENDING = Metric(
    name="nvidia.gpu.ecc.change_pending",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="1 when ECC will be in another mode after the next reset, else 0.",
    read=change_pending(ECC_MODE),
    tier=Tier.SLOW,
    profile=Profile.FULL,
    integer=True,
    typical=(0, 0),
)

MIG_CHANGE_PENDING = Metric(
    name="nvidia.gpu.mig.change_pending",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="1 when MIG will be in another mode after the next reset, else 0.",
    read=change_pending(MIG_MODE),
    tier=Tier.SLOW,
    profile=Profile.FULL,
    integer=True,
    typical=(0, 0),
)

COMPUTE_MODE_STATUS = Metric(
    name="nvidia.gpu.compute_mode.status",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="1 for who may use the GPU for compute, 0 for the others.",
    read=asking((COMPUTE_MODE,), compute_mode),
    tier=Tier.SLOW,
    profile=Profile.FULL,
    attributes=("nvidia.gpu.compute_mode.state",),
    integer=True,
    typical=(0, 1),
)

VGPU_LICENSED = Metric(
    name="nvidia.gpu.vgpu.licensed",
    kind=Kind.UPDOWNCOUNTER,
    unit="1",
    brief="1 when a virtual GPU has its licence, else 0.",
    read=asking((LICENCES,), licensed),
    tier=Tier.SLOW,
    profile=Profile.FULL,
    integer=True,
    typical=(1, 1),
    dcgm=("DCGM_FI_DEV_VGPU_LICENSE_STATUS",),
)

METRICS = (
    STATUS,
    RECOVERY_STATUS,
    PERSISTENCE,
    ECC_ENABLED,
    MIG_ENABLED,
    ECC_CHANGE_PENDING,
    MIG_CHANGE_PENDING,
    COMPUTE_MODE_STATUS,
    VGPU_LICENSED,
)
