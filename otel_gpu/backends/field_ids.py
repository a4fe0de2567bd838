"""Field ids that NVIDIA renumbered: the same number asks one driver for another metric.

The catalog writes the numbers of current headers (nvml.h 13.0.87 and later). Sources: the headers
of CUDA 12.8 to 13.5, which differ in exactly these. Where the change fell inside a branch (R580,
between 580.65 and 580.82), a driver in between may have either, so it is asked for neither.
"""

from __future__ import annotations

import re

RENUMBERED = range(251, 274)
SMOOTHING = range(251, 269)  # PWR_SMOOTHING_*
OTHERS = range(269, 274)  # CLOCKS_EVENT_REASON_*_SLOWDOWN, POWER_SYNC_BALANCING_*
SWAPPED = {199: 200, 200: 199}  # in R555 and R560 only

SMOOTHING_SINCE = (570, 0)
OLD_SINCE = (575, 0)
OLD_UNTIL = (580, 66)
CURRENT_SINCE = (580, 82)


def field_id(current: int, driver_version: str) -> int | None:
    """Give the number by which a driver knows a current field id; None when it has no such field.

    A driver whose version cannot be read is not asked for a field that moved.
    """
    if current not in RENUMBERED and current not in SWAPPED:
        return current
    version = parse(driver_version)
    if version is None:
        return None
    if current in SWAPPED:
        return SWAPPED[current] if (555, 0) <= version < (565, 0) else current
    return moved(current, version)


def moved(current: int, version: tuple[int, int]) -> int | None:
    """Follow the ids 251-273 through the branches."""
    if version >= CURRENT_SINCE:
        return current
    if OLD_SINCE <= version < OLD_UNTIL:
        return current + 5 if current in SMOOTHING else current - 18
    if SMOOTHING_SINCE <= version < OLD_SINCE and current in SMOOTHING:
        return current
    return None


def parse(driver_version: str) -> tuple[int, int] | None:
    """Read branch and minor number: `580.159.04` is (580, 159)."""
    found = re.match(r"(\d+)\.(\d+)", driver_version)
    return (int(found[1]), int(found[2])) if found else None
