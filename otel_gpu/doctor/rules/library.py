"""The library: whether the loader finds NVIDIA's management library, and can load it."""

from __future__ import annotations

from collections.abc import Iterator

from otel_gpu.doctor.facts import Facts
from otel_gpu.doctor.facts.library import ELSEWHERE, NAME, Candidate, Library
from otel_gpu.doctor.finding import Entry, Finding, Severity

NOTHING_ASKED = frozenset({"", "void", "none"})
WITH_UTILITY = frozenset({"utility", "all"})

NOTHING_VISIBLE = Entry(
    id="GPU001",
    title="NVIDIA_VISIBLE_DEVICES asks for no GPU",
    severity=Severity.ERROR,
    meaning="The NVIDIA container runtime gives a container nothing, or no GPU, when this variable "
    "is empty, void or none.",
    remedy="Set NVIDIA_VISIBLE_DEVICES=all for an agent that watches the whole node, or leave it "
    "to the device plugin, which sets it to the GPUs that the pod requested.",
)
NO_UTILITY = Entry(
    id="GPU002",
    title="NVIDIA_DRIVER_CAPABILITIES leaves out the management library",
    severity=Severity.ERROR,
    meaning="The NVIDIA container runtime mounts libnvidia-ml.so only for the capability utility.",
    remedy="Set NVIDIA_DRIVER_CAPABILITIES=utility (or compute,utility, or all) for the container, "
    "and start it again.",
)
MISSING = Entry(
    id="GPU003",
    title=f"NVIDIA's management library ({NAME}) is not found",
    severity=Severity.ERROR,
    meaning="NVML is part of the driver and not of a Python package or a CUDA image: a container "
    "gets the host's library from the container runtime.",
    remedy="In a container: start it with the NVIDIA runtime (docker run --gpus all; "
    "runtimeClassName: nvidia in Kubernetes) or with CDI. On a host: install the NVIDIA driver "
    "and its compute libraries (on Ubuntu a package of their own, libnvidia-compute-VERSION).",
    follows=("GPU001", "GPU002"),
)
UNLINKED = Entry(
    id="GPU004",
    title=f"The library is there, but not under the name {NAME}",
    severity=Severity.ERROR,
    meaning="Programs ask for the name without the driver's version. That name is a link, which "
    "ldconfig or the container toolkit makes.",
    remedy="Run ldconfig where the file is (in a container: at its start), or upgrade the NVIDIA "
    "Container Toolkit.",
)
UNREACHABLE = Entry(
    id="GPU005",
    title="The library is in a folder where the loader does not look",
    severity=Severity.ERROR,
    meaning="The loader searches LD_LIBRARY_PATH, its cache and the standard folders, and no more.",
    remedy="Set LD_LIBRARY_PATH to the folder named here before the agent starts, or name the "
    "folder in a file of /etc/ld.so.conf.d and run ldconfig.",
)
UNUSABLE = Entry(
    id="GPU006",
    title="The library's file cannot be loaded",
    severity=Severity.ERROR,
    meaning="An empty file or a dead link stands where a container runtime mounted the library "
    "when the image was built or saved; a library for another processor is of no use either.",
    remedy="An empty file: remove it from the image, let the container runtime mount the host's "
    "library in its place, and build images without the NVIDIA runtime as Docker's default. A dead "
    "link: bring back the folder or package that it led to, or remove it.",
)
STUB = Entry(
    id="GPU007",
    title="The CUDA toolkit's stub is loaded instead of the library",
    severity=Severity.ERROR,
    meaning="The toolkit's folder stubs is for linking programs on machines without a driver. What "
    "is in it answers no question.",
    remedy="Take every folder named stubs out of LD_LIBRARY_PATH and out of /etc/ld.so.conf.d.",
)
REFUSED = Entry(
    id="GPU008",
    title="The loader refuses the library",
    severity=Severity.ERROR,
    meaning="The file is there and is a library for this processor, and yet it does not load. The "
    "loader's own words say why, which NVML's code 12 does not.",
    remedy="Provide what the loader's message names: a missing library, a newer libc (the driver's "
    "library needs glibc, so that Alpine images do not work), or permission to read and map it.",
)
SEVERAL = Entry(
    id="GPU009",
    title="Libraries of several driver versions are on the loader's way",
    severity=Severity.WARNING,
    meaning="The first one is loaded. After an upgrade it may be the older one, and then it does "
    "not fit the kernel module.",
    remedy="Remove the library that does not belong to the loaded kernel module from the image, "
    "and its folder from LD_LIBRARY_PATH; then run ldconfig.",
)

ENTRIES = (
    NOTHING_VISIBLE,
    NO_UTILITY,
    MISSING,
    UNLINKED,
    UNREACHABLE,
    UNUSABLE,
    STUB,
    REFUSED,
    SEVERAL,
)


def judge(facts: Facts) -> Iterator[Finding]:
    """Judge the way to the library. Where NVML answers, nothing on the way is broken."""
    if not facts.is_real:
        return
    if not facts.is_open:
        yield from broken(facts.library)
    if not facts.opening.has_gpus:
        yield from environment(facts)
    yield from several(facts.library)


def broken(library: Library) -> Iterator[Finding]:
    """Find the one reason why there is no library to load, or why it does not load."""
    taken = library.effective
    if library.attempt and library.attempt.loaded:
        yield from stub(library.attempt.loaded)
    elif taken and not taken.fault:
        yield from stub(taken.real)
        if library.attempt:
            yield REFUSED.found(str(taken), library.attempt.refused)
    elif faulty := [one for one in library.reachable if one.fault]:
        yield UNUSABLE.found(*map(str, faulty))
    else:
        yield absent(library)


def absent(library: Library) -> Finding:
    """Say of a library that no search finds whether it is anywhere."""
    sound = [one for one in library.candidates if not one.fault]
    if named := [one for one in sound if one.is_named]:
        return UNREACHABLE.found(*map(str, named), variable(library))
    if sound:
        return UNLINKED.found(*map(str, sound))
    said = [library.attempt.refused] if library.attempt else []
    return MISSING.found(
        *said,
        *map(str, library.candidates),
        variable(library),
        f"not in the loader's cache, the standard folders, {', '.join(ELSEWHERE)}",
    )


def stub(path: str) -> Iterator[Finding]:
    """Find the toolkit's stub by its folder."""
    if "/stubs/" in path:
        yield STUB.found(f"the loader takes {path}")


def environment(facts: Facts) -> Iterator[Finding]:
    """Find variables that tell the container runtime to give less than is needed."""
    visible = facts.environment.get("NVIDIA_VISIBLE_DEVICES", "all")
    has_all = facts.library.reachable and facts.nodes.gpus
    # CDI sets it to void, too, and yet gives what is needed: then it is not the reason.
    if visible in NOTHING_ASKED and not has_all:
        yield NOTHING_VISIBLE.found(f"NVIDIA_VISIBLE_DEVICES={visible}")
    capabilities = facts.environment.get("NVIDIA_DRIVER_CAPABILITIES", "")
    words = {word.strip() for word in capabilities.split(",")} - {""}
    is_without = words and words.isdisjoint(WITH_UTILITY) and not facts.library.reachable
    # Where there are no device files either, it is the runtime that is missing.
    if is_without and facts.nodes.control.is_there:
        yield NO_UTILITY.found(f"NVIDIA_DRIVER_CAPABILITIES={capabilities}")


def several(library: Library) -> Iterator[Finding]:
    """Find libraries of more than one version where the loader looks."""
    first: dict[str, Candidate] = {}
    for one in library.reachable:
        if one.version and not one.fault:
            first.setdefault(one.version, one)
    if len(first) > 1:
        yield SEVERAL.found(*map(str, first.values()), f"in use: {library.version or 'unknown'}")


def variable(library: Library) -> str:
    """Say what LD_LIBRARY_PATH is."""
    return f"LD_LIBRARY_PATH={library.variable}" if library.variable else "no LD_LIBRARY_PATH"
