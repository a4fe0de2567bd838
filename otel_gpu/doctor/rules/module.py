"""The kernel module: whether it is loaded, fits the library, and drives the GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from otel_gpu.doctor.facts import Facts
from otel_gpu.doctor.facts.module import PciGpu
from otel_gpu.doctor.finding import Entry, Finding, Severity

NVIDIA = "nvidia"

NOT_LOADED = Entry(
    id="GPU030",
    title="The NVIDIA kernel module is not loaded",
    severity=Severity.ERROR,
    meaning="The library finds no driver to speak to; NVML reports code 9.",
    remedy="Run modprobe nvidia on the host, and read its words and dmesg when it fails: a module "
    "that was not built for the running kernel (dkms status), or that Secure Boot refuses.",
    follows=("GPU033",),
)
MISMATCH = Entry(
    id="GPU031",
    title="The library and the kernel module are of different versions",
    severity=Severity.ERROR,
    meaning="They come from one driver and work only together; NVML reports code 18. The driver "
    "was upgraded while the old module stayed loaded, or an image brings a library of its own.",
    remedy="After an upgrade: stop what uses the GPUs (otel-gpu quiesce releases ours), then "
    "reload the module or reboot. In a container: start it again, so that the host's new library "
    "is mounted, and remove any libnvidia-ml from the image and from LD_LIBRARY_PATH.",
)
OTHER_DRIVER = Entry(
    id="GPU032",
    title="The GPUs are held by another kernel driver",
    severity=Severity.ERROR,
    meaning="A GPU that is passed to a virtual machine (vfio-pci) or driven by nouveau is not seen "
    "by NVIDIA's module.",
    remedy="vfio-pci: read the GPU inside the virtual machine. nouveau: blacklist it, rebuild the "
    "initramfs and reboot.",
)
NO_GPU = Entry(
    id="GPU033",
    title="There is no NVIDIA GPU on the PCI bus",
    severity=Severity.ERROR,
    meaning="No display or 3D controller of vendor 10de is in /sys/bus/pci/devices.",
    remedy="On a virtual machine: attach a GPU. On a physical one: check power, risers and the "
    "firmware's settings; lspci -d 10de: should list it. To try otel-gpu without one: "
    "otel-gpu demo.",
)
UNDRIVEN = Entry(
    id="GPU034",
    title="A GPU on the PCI bus is not driven by NVIDIA's module",
    severity=Severity.WARNING,
    meaning="The other GPUs are. It fell off, failed to start, or is held by another driver.",
    remedy="Nothing is wrong if it is passed to a virtual machine. Else read dmesg for NVRM and "
    "its address: a GPU that failed to start needs a reset, a power cycle or service.",
)

ENTRIES = (NOT_LOADED, MISMATCH, OTHER_DRIVER, NO_GPU, UNDRIVEN)


def judge(facts: Facts) -> Iterator[Finding]:
    """Judge the kernel's side."""
    if not facts.has_devices:
        return
    if not facts.is_open:
        yield from unusable(facts)
    yield from bus(facts)


def unusable(facts: Facts) -> Iterator[Finding]:
    """Find a module that is not there, or is not the library's."""
    module, library = facts.module, facts.library
    if module.is_loaded is False:
        yield NOT_LOADED.found("neither /proc/driver/nvidia nor /sys/module/nvidia is there")
    if module.version and library.version and module.version != library.version:
        yield MISMATCH.found(
            f"kernel module {module.version}, library {library.version}",
            *(map(str, filter(None, [library.effective]))),
        )


def bus(facts: Facts) -> Iterator[Finding]:
    """Find GPUs that are nowhere, or in other hands."""
    pci = facts.module.pci
    if pci is None or (not pci and facts.opening.has_gpus):
        return
    others = [gpu for gpu in pci if gpu.driver != NVIDIA]
    if not pci:
        yield NO_GPU.found("no display or 3D controller of vendor 10de in /sys/bus/pci/devices")
    elif len(others) < len(pci):
        yield from (UNDRIVEN.found(*map(held, others)) for _ in others[:1])
    elif any(gpu.driver for gpu in others):
        yield OTHER_DRIVER.found(*map(held, others))


def held(gpu: PciGpu) -> str:
    """Say who has a GPU."""
    return f"{gpu.address}: {gpu.driver or 'no driver'}"
