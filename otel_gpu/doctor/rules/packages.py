"""The Python binding: whether the module pynvml that the worker imports is NVIDIA's own."""

from __future__ import annotations

from collections.abc import Iterator

from otel_gpu.doctor.facts import Facts
from otel_gpu.doctor.facts.packages import OURS, Package, Packages
from otel_gpu.doctor.finding import Entry, Finding, Severity

REINSTALL = (
    "pip uninstall pynvml nvidia-ml-py3, then pip install --force-reinstall nvidia-ml-py: the "
    "uninstalling takes away files that the distributions share."
)

RIVAL = Entry(
    id="GPU010",
    title="Another distribution's module pynvml is in the way",
    severity=Severity.ERROR,
    meaning="nvidia-ml-py3 (abandoned) and pynvml before 12 bring an old module of the same name, "
    "without the functions of newer drivers. Which of the two is imported depends on the order of "
    "installation.",
    remedy=REINSTALL,
)
NO_BINDING = Entry(
    id="GPU011",
    title="The module pynvml of nvidia-ml-py is not there",
    severity=Severity.ERROR,
    meaning="NVML is read through nvidia-ml-py. Uninstalling a rival distribution takes its file "
    "away, too, and leaves only the metadata.",
    remedy="pip install --force-reinstall nvidia-ml-py, into the environment of otel-gpu.",
)

ENTRIES = (RIVAL, NO_BINDING)


def judge(facts: Facts) -> Iterator[Finding]:
    """Judge what is installed."""
    if not facts.is_real:
        return
    packages = facts.packages
    rivals = [one for one in packages.bindings if is_rival(one)]
    if rivals or is_foreign(packages):
        yield RIVAL.found(*map(told, packages.bindings), f"import leads to {packages.module}")
    if not packages.module:
        yield NO_BINDING.found(*(tuple(map(told, packages.bindings)) or ("none is installed",)))


def is_rival(package: Package) -> bool:
    """Whether it brings its own pynvml; where its files are unknown, it has to be assumed."""
    return package.name != OURS and package.brings_module is not False


def is_foreign(packages: Packages) -> bool:
    """Whether the module that is imported is not the one that nvidia-ml-py brought."""
    return bool(packages.module and packages.home and packages.module != packages.home)


def told(package: Package) -> str:
    """Say what is installed, and whether it brings the module."""
    brings = {True: "brings pynvml", False: "brings no pynvml", None: "has no list of its files"}
    return f"{package.name} {package.version} {brings[package.brings_module]}"
