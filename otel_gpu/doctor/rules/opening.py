"""Starting NVML: what the library said when it was asked to open the driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from otel_gpu.doctor.facts import Facts
from otel_gpu.doctor.facts.opening import Opening
from otel_gpu.doctor.finding import Entry, Finding, Severity
from otel_gpu.model import Code

KERNEL_LOG = "read the kernel log for NVRM and Xid (dmesg -T | grep -E 'NVRM|Xid')"

LIBRARY = Entry(
    id="GPU040",
    title="NVML does not start: library not found (12)",
    severity=Severity.ERROR,
    meaning="The loader gave no library.",
    remedy="See the entries of the library, GPU001 to GPU009.",
    follows=("GPU003", "GPU004", "GPU005", "GPU006", "GPU008"),
)
DRIVER = Entry(
    id="GPU041",
    title="NVML does not start: driver not loaded (9)",
    severity=Severity.ERROR,
    meaning="The library found no kernel module, or no /dev/nvidiactl.",
    remedy="On a host: modprobe nvidia. In a container: pass the devices. If both are there, "
    + KERNEL_LOG
    + ".",
    follows=("GPU007", "GPU020", "GPU030", "GPU032", "GPU033"),
)
PERMISSION = Entry(
    id="GPU042",
    title="NVML does not start: insufficient permissions (4)",
    severity=Severity.ERROR,
    meaning="This user may not open /dev/nvidiactl.",
    remedy="See ls -l /dev/nvidiactl: crw-rw-rw- is usual. Add the user to the owning group, or "
    "load the module with NVreg_DeviceFileMode=0666.",
    follows=("GPU022", "GPU023", "GPU024"),
)
VERSIONS = Entry(
    id="GPU043",
    title="NVML does not start: library and kernel module do not match (18)",
    severity=Severity.ERROR,
    meaning="The library is of another driver version than the module that is loaded.",
    remedy="Reload the module or reboot after an upgrade; in a container, remove the image's own "
    "libnvidia-ml and start it again. The kernel log names both (NVRM: API mismatch).",
    follows=("GPU031",),
)
SYSTEM = Entry(
    id="GPU044",
    title="NVML does not start: the operating system blocks it (17, 999)",
    severity=Severity.ERROR,
    meaning="Code 17 comes of a device file that is no device, 999 mostly of a control group that "
    "forbids it; 999 is also NVML's word for a GPU that is gone.",
    remedy="In a container, start it again. On the host, " + KERNEL_LOG + ".",
    follows=("GPU021", "GPU023", "GPU024"),
)
HANGS = Entry(
    id="GPU045",
    title="The driver hangs",
    severity=Severity.ERROR,
    meaning="A call into NVML did not return. The process that made it was left behind; it may not "
    "be possible to kill it.",
    remedy="Read the kernel log for Xid 79, 119 and 120 and for 'blocked for more than 120 "
    "seconds'; collect nvidia-bug-report.sh --safe-mode; reboot the node if it stays so.",
)
DIED = Entry(
    id="GPU046",
    title="The process that reads NVML ended by itself",
    severity=Severity.ERROR,
    meaning="The driver's library crashed, the process was killed (memory limit), or it could not "
    "be started.",
    remedy="Its last words are below; a signal 9 is usually the memory limit of the container. A "
    "crash inside libnvidia-ml.so is a matter for NVIDIA, with those words.",
    follows=("GPU010", "GPU011"),
)
LATE = Entry(
    id="GPU047",
    title="The driver had not answered everything when doctor's time was up",
    severity=Severity.ERROR,
    meaning="No call hung; there were many, or slow ones. With persistence mode off, each GPU "
    "takes one to three seconds to start.",
    remedy="Enable nvidia-persistenced (systemctl enable --now nvidia-persistenced), and run "
    "doctor again. The agent itself waits longer.",
)
OTHER = Entry(
    id="GPU048",
    title="NVML does not start, for a reason of its own",
    severity=Severity.ERROR,
    meaning="The code and the words are the library's (nvml.h, nvmlReturn_t).",
    remedy="Compare with nvidia-smi on the host; " + KERNEL_LOG + ".",
    follows=("GPU010", "GPU011"),
)
NO_BACKEND = Entry(
    id="GPU049",
    title="The backend cannot be made",
    severity=Severity.ERROR,
    meaning="Its name or its specification was not understood, or its module cannot be imported.",
    remedy="The evidence says what can be written; otel-gpu config check FILE checks the rest.",
    follows=("GPU010", "GPU011"),
)

ENTRIES = (LIBRARY, DRIVER, PERMISSION, VERSIONS, SYSTEM, HANGS, DIED, LATE, OTHER, NO_BACKEND)

BY_CODE: Mapping[int, Entry] = {
    Code.LIBRARY_NOT_FOUND: LIBRARY,
    Code.DRIVER_NOT_LOADED: DRIVER,
    Code.NO_PERMISSION: PERMISSION,
    Code.LIB_RM_VERSION_MISMATCH: VERSIONS,
    Code.OPERATING_SYSTEM: SYSTEM,
    Code.UNKNOWN: SYSTEM,
    Code.INVALID_ARGUMENT: NO_BACKEND,  # what the worker says of a ConfigError
}


def judge(facts: Facts) -> Iterator[Finding]:
    """Judge why the driver is not open."""
    opening = facts.opening
    if opening.system is None or opening.is_late:
        yield entry(opening).found(*said(opening), f"after {opening.seconds:.1f} s")


def said(opening: Opening) -> Iterator[str]:
    """Give each call that hangs, or else what the driver or its worker said."""
    for call, uuid in opening.hung:
        yield f"{call}{f' on GPU {uuid}' if uuid else ''} did not return"
    if opening.trouble and not opening.hung:
        yield from filter(str.strip, opening.trouble.text.splitlines())


def entry(opening: Opening) -> Entry:
    """Choose the one entry that says why there is no driver."""
    if opening.is_late:
        return LATE
    if opening.hung:
        return HANGS
    if opening.has_died:
        return DIED
    return BY_CODE.get(opening.trouble.code, OTHER) if opening.trouble else OTHER
