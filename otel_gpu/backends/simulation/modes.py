"""The modes that a simulated GPU is in, and what the driver asks to be done with it: nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_gpu.backends.simulation.physics import Gpu
from otel_gpu.backends.simulation.shapes import Reply, nothing, state
from otel_gpu.catalog.health import COMPUTE_MODE, ECC_MODE, LICENCES, MIG_MODE, RECOVERY

FEATURES = 3  # nvml.h, NVML_GRID_LICENSE_FEATURE_MAX_COUNT
NEVER = dict.fromkeys(("year", "month", "day", "hour", "min", "sec", "status"), 0)


def licences(_: Gpu, __: int) -> dict[str, Any]:
    """Give an `nvmlGridLicensableFeatures_t` of a GPU that is no virtual one."""
    feature = {
        "featureCode": 0,
        "featureState": 0,
        "licenseInfo": "",
        "productName": "",
        "featureEnabled": 0,
        "licenseExpiry": NEVER,
    }
    return {
        "isGridLicenseSupported": 0,
        "licensableFeaturesCount": 0,
        "gridLicensableFeatures": [feature] * FEATURES,
    }


def lasting(*, on: bool) -> list[int]:
    """Give a mode as it is and as it will be after the next reset."""
    return [int(on), int(on)]


CALLS: Mapping[str, Reply] = {
    "nvmlDeviceGetPersistenceMode": state(lambda gpu, _: int(gpu.board.persistence)),
    ECC_MODE.call: state(lambda gpu, _: lasting(on=gpu.board.ecc)),
    MIG_MODE.call: state(lambda gpu, _: lasting(on=bool(gpu.instances))),
    COMPUTE_MODE.call: nothing,  # default: any number of processes
    LICENCES.call: state(licences),
}
"""By function."""

FIELDS: Mapping[tuple[int, ...], Reply] = {RECOVERY.args: nothing}
"""By field id and scope."""
