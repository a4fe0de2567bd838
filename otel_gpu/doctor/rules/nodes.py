"""The device files: /dev/nvidiactl and /dev/nvidiaN, which NVML opens for reading and writing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from errno import EACCES, EPERM

from otel_gpu.doctor.facts import Facts
from otel_gpu.doctor.facts.nodes import Node
from otel_gpu.doctor.finding import Entry, Finding, Severity

NO_CONTROL = Entry(
    id="GPU020",
    title="/dev/nvidiactl is not there",
    severity=Severity.ERROR,
    meaning="Everything that NVML asks goes through this file. On a host the driver makes it; in a "
    "container only what was given to it is there.",
    remedy="In a container: pass the devices (docker run --gpus all; runtimeClassName: nvidia and "
    "NVIDIA_VISIBLE_DEVICES=all, or a request for nvidia.com/gpu, in Kubernetes). On a host: run "
    "nvidia-modprobe, or enable nvidia-persistenced, which makes the files at boot.",
    follows=("GPU001", "GPU030", "GPU033"),
)
MASKED = Entry(
    id="GPU021",
    title="Something other than a device stands at the device file's place",
    severity=Severity.ERROR,
    meaning="A file or an empty mount covers it. NVML then reports code 17 (operating system) for "
    "/dev/nvidiactl, and leaves out the GPU for /dev/nvidiaN.",
    remedy="Find what is mounted there (findmnt) or was left in the image, and remove it; ls -l "
    "/dev/nvidia* should show character devices of major 195.",
)
BY_MODE = Entry(
    id="GPU022",
    title="This user may not open the device files",
    severity=Severity.ERROR,
    meaning="Their mode and owner do not let this process read and write them. NVML then reports "
    "code 4 for /dev/nvidiactl, and leaves out the GPU for /dev/nvidiaN.",
    remedy="Add the user to the group that owns them (in Kubernetes: supplementalGroups), or load "
    "the module with NVreg_DeviceFileMode=0666, which is its default.",
)
BY_CGROUP = Entry(
    id="GPU023",
    title="The control group forbids the device files",
    severity=Severity.ERROR,
    meaning="The mode would allow it; the container's list of devices does not. This happens to "
    "running containers when systemctl daemon-reload on the host writes the lists anew, and NVML "
    "then reports code 999 (unknown).",
    remedy="Start the container again. So that it stays: pass GPUs by CDI, or run nvidia-ctk "
    "system create-dev-char-symlinks --create-all on the host (with a udev rule), or name the "
    "files themselves (docker run --device /dev/nvidiactl ...).",
)
BY_POLICY = Entry(
    id="GPU024",
    title="A security module forbids the device files",
    severity=Severity.ERROR,
    meaning="Mode and owner would allow it, and yet it is denied: SELinux or AppArmor.",
    remedy="SELinux: ausearch -m avc shows the denial, and setsebool -P container_use_devices on "
    "lets containers use their devices. AppArmor: see the container's profile.",
)
NO_GPU_FILE = Entry(
    id="GPU025",
    title="There is /dev/nvidiactl, but no GPU's device file",
    severity=Severity.ERROR,
    meaning="NVML starts and counts no GPU.",
    remedy="Request GPUs for the container (docker run --gpus all; NVIDIA_VISIBLE_DEVICES=all for "
    "an agent that watches the node). On a host: run nvidia-modprobe -c 0, or nvidia-smi as root.",
    follows=("GPU001", "GPU030", "GPU033"),
)
SOME_SHUT = Entry(
    id="GPU026",
    title="Some GPUs' device files are shut to this process",
    severity=Severity.WARNING,
    meaning="The others are read. It is meant to be so inside a Slurm job or a container with some "
    "of the node's GPUs; for an agent that watches the node it is not.",
    remedy="Run the agent outside of the job, or give it all GPUs; a mode or owner that differs "
    "from the others' is put right with NVreg_DeviceFileMode=0666.",
)
FEWER = Entry(
    id="GPU027",
    title="This process was given fewer GPUs than the machine has",
    severity=Severity.INFO,
    meaning="Only GPUs with a device file here are read.",
    remedy="Nothing is wrong if it was meant so. An agent that watches the node needs all of them: "
    "NVIDIA_VISIBLE_DEVICES=all, and no request for single GPUs.",
)

ENTRIES = (
    NO_CONTROL,
    MASKED,
    BY_MODE,
    BY_CGROUP,
    BY_POLICY,
    NO_GPU_FILE,
    SOME_SHUT,
    FEWER,
)


def judge(facts: Facts) -> Iterator[Finding]:
    """Judge the files. Those of single GPUs matter less while another one's is open."""
    if not facts.has_devices:
        return
    yield from absent(facts)
    deciding = [node for node in facts.nodes.deciding if node.is_there]
    for entry, is_so in KINDS.items():
        if shut := [node for node in deciding if is_so(facts, node)]:
            yield entry.found(*map(str, shut), *context(facts, entry))
    if facts.nodes.open_gpus:
        yield from some(facts)


def absent(facts: Facts) -> Iterator[Finding]:
    """Find files that are not there; the library makes them itself where it may."""
    control, gpus = facts.nodes.control, facts.nodes.gpus
    if not control.is_there and not facts.is_open:
        others = ", ".join(node.name for node in gpus) or "none"
        yield NO_CONTROL.found(f"device files of GPUs: {others}", *making(facts))
    elif control.is_there and not gpus and not facts.opening.has_gpus:
        known = facts.module.gpus
        count = "unknown" if known is None else len(known)
        yield NO_GPU_FILE.found(f"device files: 0; GPUs that the kernel module drives: {count}")


def making(facts: Facts) -> Iterator[str]:
    """Say when nobody will make the file."""
    if facts.module.params.get("ModifyDeviceFiles") == "0":
        yield "ModifyDeviceFiles is 0: the driver's tools do not make it"
    elif facts.module.is_loaded and facts.process.uid:
        yield f"the kernel module is loaded; user {facts.process.uid} cannot make the file"


def some(facts: Facts) -> Iterator[Finding]:
    """Find GPUs that are kept from this process while others are not."""
    nodes = facts.nodes
    if shut := [node for node in nodes.gpus if not node.is_open]:
        yield SOME_SHUT.found(*map(str, shut), f"open to this process: {len(nodes.open_gpus)}")
    known = len(facts.module.gpus or ())
    if len(nodes.gpus) < known:
        yield FEWER.found(
            f"device files: {len(nodes.gpus)}; GPUs that the kernel module drives: {known}"
        )


def context(facts: Facts, entry: Entry) -> Iterator[str]:
    """Say who we are, where that is what a file is shut for."""
    if entry is BY_MODE:
        groups = ", ".join(map(str, facts.process.gids))
        yield f"this process is user {facts.process.uid}, groups {groups}"
        if (mode := facts.module.params.get("DeviceFileMode", "")).isdigit():
            yield f"the module makes them with mode {int(mode):04o} (NVreg_DeviceFileMode)"
    if entry is BY_POLICY:
        yield "SELinux is enforcing" if facts.process.selinux else "SELinux is not seen here"


def is_masked(_facts: Facts, node: Node) -> bool:
    """Whether something else is in its place."""
    return not node.is_device


def is_by_mode(facts: Facts, node: Node) -> bool:
    """Whether mode and owner are what keeps us out."""
    return node.is_device and node.errno == EACCES and not facts.process.passes(node)


def is_by_cgroup(_facts: Facts, node: Node) -> bool:
    """Whether the control group is: the kernel says EPERM for it, and for nothing else here."""
    return node.is_device and node.errno == EPERM


def is_by_policy(facts: Facts, node: Node) -> bool:
    """Whether it is neither mode nor owner."""
    return node.is_device and node.errno == EACCES and facts.process.passes(node)


KINDS: dict[Entry, Callable[[Facts, Node], bool]] = {
    MASKED: is_masked,
    BY_MODE: is_by_mode,
    BY_CGROUP: is_by_cgroup,
    BY_POLICY: is_by_policy,
}
