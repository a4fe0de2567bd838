"""The GPUs: how many NVML counts, which of them open, and which answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from otel_gpu.doctor.facts import Facts
from otel_gpu.doctor.finding import Entry, Finding, Severity
from otel_gpu.doctor.matrix import label
from otel_gpu.model import Code, Device, Refused, System

NONE = Entry(
    id="GPU050",
    title="NVML starts and counts no GPU",
    severity=Severity.ERROR,
    meaning="NVML leaves out, without an error, every GPU whose device file it cannot open.",
    remedy="Give this process the GPUs' device files; see GPU021 to GPU025. Where they are there "
    "and open, the module failed to start the GPUs: dmesg | grep NVRM says why.",
    follows=("GPU001", "GPU021", "GPU022", "GPU023", "GPU024", "GPU025", "GPU032", "GPU033"),
)
LOST = Entry(
    id="GPU051",
    title="A GPU is lost",
    severity=Severity.ERROR,
    meaning="It is counted but does not open (15, or 999): mostly it fell off the PCI bus, Xid 79. "
    "The others are read.",
    remedy="Drain the node and reboot it, or cycle its power; when it comes again, check the GPU's "
    "power and seating, and have it replaced. The kernel log names its PCI address.",
)
RESET = Entry(
    id="GPU052",
    title="A GPU needs a reset",
    severity=Severity.ERROR,
    meaning="After a fatal error it refuses everything until it is reset (16).",
    remedy="Stop what uses it (otel-gpu quiesce releases our own handles), then nvidia-smi "
    "--gpu-reset -i N, or reboot; then otel-gpu resume.",
)
DENIED = Entry(
    id="GPU053",
    title="A GPU may not be opened by this user",
    severity=Severity.ERROR,
    meaning="NVML counts it and denies it (4).",
    remedy="See the mode and owner of its /dev/nvidiaN, and NVreg_DeviceFileMode.",
    follows=("GPU022", "GPU023", "GPU024"),
)
REFUSED = Entry(
    id="GPU054",
    title="A GPU does not open",
    severity=Severity.ERROR,
    meaning="NVML counts it and refuses it, with a code of nvml.h (nvmlReturn_t): 8 is a power "
    "cable that is missing, 11 an interrupt that does not arrive, 27 a GPU that still starts.",
    remedy="Read the kernel log for NVRM and its PCI address; check the power cables for code 8.",
)
HUNG = Entry(
    id="GPU055",
    title="A GPU hangs",
    severity=Severity.ERROR,
    meaning="A call about it did not return; it was left out, and the others were read without it.",
    remedy="Read the kernel log for Xid 79, 119 and 120. Drain the node; reset the GPU, or reboot. "
    "nvidia-bug-report.sh --safe-mode collects what NVIDIA asks for.",
)
SILENT = Entry(
    id="GPU056",
    title="A GPU was opened and then answered nothing",
    severity=Severity.ERROR,
    meaning="It was lost between its enumeration and the first sweep, or every question failed.",
    remedy="Run doctor again; if it stays so, read the kernel log for NVRM and Xid.",
    follows=("GPU055",),
)
FEWER = Entry(
    id="GPU057",
    title="NVML counts fewer GPUs than there are open device files",
    severity=Severity.WARNING,
    meaning="A GPU that is in the list of excluded ones, or that the module failed to start, has a "
    "file and is not counted.",
    remedy="Compare nvidia-smi -L with ls /dev/nvidia*, and read /proc/driver/nvidia/gpus/*/"
    "information and the kernel log for NVRM.",
    follows=("GPU055",),
)
NOT_PERSISTENT = Entry(
    id="GPU058",
    title="Persistence mode is off",
    severity=Severity.WARNING,
    meaning="When the last user of a GPU leaves, the driver shuts it down; the next one waits for "
    "seconds, and counters begin anew. While the agent runs, its open handle keeps the GPU up.",
    remedy="Enable nvidia-persistenced (systemctl enable --now nvidia-persistenced); nvidia-smi "
    "-pm 1 does the same until the next boot.",
)

ENTRIES = (NONE, LOST, RESET, DENIED, REFUSED, HUNG, SILENT, FEWER, NOT_PERSISTENT)

BY_CODE: Mapping[int, Entry] = {
    Code.GPU_IS_LOST: LOST,
    Code.UNKNOWN: LOST,
    Code.RESET_REQUIRED: RESET,
    Code.NO_PERMISSION: DENIED,
}


def judge(facts: Facts) -> Iterator[Finding]:
    """Judge what the enumeration and the sweep showed."""
    system = facts.opening.system
    if system is None:
        return
    yield from counted(facts, system)
    yield from refused(system.refused, unread(facts, system))
    hung = facts.opening.hung
    if hung:
        yield HUNG.found(*(f"{call} on GPU {uuid}" for call, uuid in hung))
    yield from silent(facts, {uuid for _, uuid in hung})
    yield from persistence(facts, system.devices)


def counted(facts: Facts, system: System) -> Iterator[Finding]:
    """Compare NVML's count with the files that this process could open."""
    gpus = [device for device in system.devices if not device.is_instance]
    count = len(gpus) + len(system.refused)
    files = len(facts.nodes.open_gpus) if facts.has_devices else 0
    if not count and not facts.opening.hung:
        yield NONE.found(*counts(facts, count, files))
    elif count < files:
        yield FEWER.found(*counts(facts, count, files))


def counts(facts: Facts, count: int, files: int) -> Iterator[str]:
    """Say how many GPUs each side knows of."""
    yield f"GPUs that NVML counts: {count}; device files open to this process: {files}"
    if facts.module.gpus is not None:
        yield f"GPUs that the kernel module drives: {len(facts.module.gpus)}"


def refused(gpus: Iterable[Refused], others: tuple[str, ...]) -> Iterator[Finding]:
    """Give each kind of refusal once, with the GPUs that it is about."""
    evidence: dict[Entry, list[str]] = {}
    for gpu in gpus:
        said = f"index {gpu.index}{f', {gpu.uuid}' if gpu.uuid else ''}: code {gpu.code}"
        evidence.setdefault(BY_CODE.get(gpu.code, REFUSED), []).append(said)
    for entry, lines in evidence.items():
        yield entry.found(*lines, *others)


def unread(facts: Facts, system: System) -> tuple[str, ...]:
    """Name the GPUs that the kernel module drives and NVML did not open; it gave only an index."""
    read = {device.pci_address for device in system.devices}
    left = [address for address in facts.module.gpus or () if address not in read]
    return (f"driven by the module and not opened: {', '.join(left)}",) if left else ()


def silent(facts: Facts, hung: set[str]) -> Iterator[Finding]:
    """Find GPUs that did not answer the sweep, though no call to them hung."""
    devices = facts.opening.matrix.silent
    if mute := [named(one) for one in devices if hung.isdisjoint({one.uuid, one.parent})]:
        yield SILENT.found(*mute)


def persistence(facts: Facts, devices: Iterable[Device]) -> Iterator[Finding]:
    """Find GPUs whose persistence mode is off."""
    modes = facts.opening.is_persistent
    if off := [named(one) for one in devices if modes.get(one.uuid) is False]:
        yield NOT_PERSISTENT.found(*off)


def named(device: Device) -> str:
    """Name a GPU so that it can be found."""
    return f"{label(device)}: {device.uuid}, {device.pci_address}, {device.model}"
