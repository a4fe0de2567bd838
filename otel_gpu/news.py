"""What became of the GPUs between two snapshots, in the words of the log: one line a change. Pure.

Of the driver itself, and of calls that hang, the worker's supervisor tells when it happens.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from otel_gpu.model import Snapshot

News = tuple[int, str]  # level, line


def news(before: Snapshot, after: Snapshot) -> Iterator[News]:
    """Say which GPUs stopped answering, answer again or cannot be opened; else nothing.

    While the driver as a whole is not open, that was told, and goes for all of them.
    """
    if is_shut(before) or is_shut(after):
        return
    for uuid, device in after.devices.items():
        was, now = before.up.get(uuid), after.up.get(uuid)
        name = f"GPU {uuid} ({device.name}, {device.pci_address or 'no PCI address'})"
        if was and not now:
            yield logging.ERROR, f"{name} does not answer: its series end, its identity is kept"
        elif was is False and now:
            yield logging.INFO, f"{name} answers again"
    for refused in set(after.system.refused) - set(before.system.refused):
        line = f"GPU {refused.index} is counted but cannot be opened (NVML code {refused.code})"
        yield logging.ERROR, f"{line}: otel-gpu doctor says more"


def is_shut(snapshot: Snapshot) -> bool:
    """Whether it is the driver that does not answer, and not a GPU."""
    return bool(snapshot.trouble) and not any(snapshot.up.values())
