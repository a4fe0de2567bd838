"""Pages, recovery actions, modes, licences, and the state of health that follows from all."""

from __future__ import annotations

from collections.abc import Sequence

from otel_gpu.model import Query
from tests.fake_nvml.facts import FIELD, HOPPER, Thing
from tests.fake_nvml.machine import Values, Word
from tests.fake_nvml.told import Lines, Made, Told, made, on_gpus, states
from tests.fake_nvml.topics.links import FABRIC, fabric_mask


@on_gpus
def retired_pages(_board: str, turn: int) -> tuple[Lines, Sequence[Made]]:
    """List the pages that were retired for each cause."""
    causes = {"multiple_single_bit": 3 + turn, "double_bit": turn}
    queries = [Query("nvmlDeviceGetRetiredPages", (cause,)) for cause in range(2)]
    lines: dict[str, Values] = {
        f"nvmlDeviceGetRetiredPages({cause})": [{"address": 4096 * n} for n in range(count)]
        for cause, count in enumerate(causes.values())
    }
    return lines, [
        made(f"page_retirement pages | {name}", count, *queries) for name, count in causes.items()
    ]


ACTIONS = (
    "none",
    "gpu_reset",
    "node_reboot",
    "drain_p2p",
    "drain_and_reset",
    "recover_imex_domain",
    "bus_reset",
    "system_reboot",
)
"""nvml.h, NVML_GPU_RECOVERY_ACTION_*."""
RECOVERY = Query(FIELD, (230, 0))


@on_gpus
def recovery(_board: str, turn: int) -> tuple[Lines, Sequence[Made]]:
    """Ask for one action after the other."""
    action = turn % len(ACTIONS)
    points = states("recovery status", ACTIONS, ACTIONS[action], RECOVERY)
    return {f"{FIELD}(230,0)": {"uint": action}}, points


@on_gpus
def modes(board: str, turn: int) -> tuple[Lines, Sequence[Made]]:
    """Say in which modes the GPU is, and whether they change with the next reset."""
    compute = Query("nvmlDeviceGetComputeMode")
    ecc, mig = Query("nvmlDeviceGetEccMode"), Query("nvmlDeviceGetMigMode")
    names = ("default", "exclusive_thread", "prohibited", "exclusive_process")
    divided, later = int(board == HOPPER), turn % 2

    def ecc_changes(told: Told) -> int | None:
        both = {told.value(ecc, 0), told.value(ecc, 1)}
        return int(len(both) == 2) if ecc in told.offered else None

    return {compute.call: turn % 4, mig.call: (divided, later)}, [
        *states("compute_mode status", names, names[turn % 4], compute),
        made("mig enabled", divided, mig),
        made("mig change_pending", int(divided != later), mig),
        Made(Thing.of("ecc change_pending"), frozenset({ecc}), ecc_changes),
    ]


@on_gpus
def licence(_board: str, turn: int) -> tuple[Lines, Sequence[Made]]:
    """Give a virtual GPU its licence in every other round."""
    has = turn % 2
    features: list[dict[str, Word]] = [
        {"featureCode": 0, "featureState": 1},
        {"featureCode": 1, "featureState": has, "productName": "NVIDIA Virtual GPU"},
    ]
    query = Query("nvmlDeviceGetGridLicensableFeatures")
    return {f"{query.call}_v4": features}, [made("vgpu licensed", has, query)]


REMAP_PENDING, REMAP_FAILED = Query(FIELD, (144, 0)), Query(FIELD, (145, 0))
BANKS = Query("nvmlDeviceGetRowRemapperHistogram")
SRAM = Query("nvmlDeviceGetSramEccErrorStatus")
UNREPAIRABLE = Query("nvmlDeviceGetUnrepairableMemoryFlag_v1")
REPAIR = Query("nvmlDeviceGetRepairStatus")


def health(told: Told) -> str:
    """Judge a GPU by what is offered, as the catalog's design says: the gravest wins."""
    action = ACTIONS[told.turn % len(ACTIONS)] if RECOVERY in told.offered else "none"
    if action in {"gpu_reset", "node_reboot", "drain_and_reset", "bus_reset", "system_reboot"}:
        return "failed"
    if (
        told.value(REMAP_FAILED)
        or told.value(BANKS, "none")
        or told.value(SRAM, "bThresholdExceeded")
        or told.value(UNREPAIRABLE, "bUnrepairableMemory")
    ):
        return "predicted_failure"
    mask = fabric_mask(told.turn) if FABRIC in told.offered else 0
    if (
        action != "none"
        or told.value(REMAP_PENDING)
        or told.value(REPAIR, "bChannelRepairPending")
        or told.value(REPAIR, "bTpcRepairPending")
        or any(mask >> 2 * place & 3 == 1 for place in range(4))
    ):
        return "degraded"
    return "ok"


@on_gpus
def status(_board: str, _turn: int) -> tuple[Lines, Sequence[Made]]:
    """Say in which state of health the GPU is: exactly one of them is 1, whatever is refused."""
    asked = frozenset(
        {RECOVERY, FABRIC, REPAIR, REMAP_PENDING, REMAP_FAILED, BANKS, SRAM, UNREPAIRABLE}
    )
    return {}, [
        Made(
            Thing.of(f"status | {name}"),
            asked,
            lambda told, name=name: int(health(told) == name),  # type: ignore[misc] # each its own
        )
        for name in ("ok", "degraded", "predicted_failure", "failed")
    ]
