from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from otel_gpu.doctor.facts.library import Attempt
from otel_gpu.doctor.facts.module import Module, PciGpu
from otel_gpu.doctor.rules.module import judge
from tests.doctor.box import Box
from tests.doctor.cases import HEALTHY, ids, of_box, shut

ADDRESSES = ("0000:00:00.0", "0000:01:00.0")


def on_bus(*drivers: str) -> tuple[PciGpu, ...]:
    return tuple(
        PciGpu(address, driver) for address, driver in zip(ADDRESSES, drivers, strict=False)
    )


def test_a_module_that_fits_gives_no_finding() -> None:
    assert ids(judge(HEALTHY)) == []
    assert ids(judge(shut(999))) == []


def test_a_kernel_without_the_module_is_told_so(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.kernel()
    box.gpu(0, driver="")
    assert ids(judge(of_box(tmp_path, 9))) == ["GPU030"]


def test_where_the_kernel_shows_nothing_nothing_is_claimed(tmp_path: Path) -> None:
    assert ids(judge(of_box(tmp_path, 9))) == []


def test_two_versions_are_told_with_the_file(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.library("/usr/lib64", "580.159.04")
    box.module("570.86.10")
    (finding,) = judge(of_box(tmp_path, 18))
    assert finding.id == "GPU031"
    assert finding.evidence[0] == "kernel module 570.86.10, library 580.159.04"
    assert "/usr/lib64/libnvidia-ml.so.580.159.04" in finding.evidence[1]


def test_the_version_of_the_file_that_was_loaded_counts() -> None:
    attempt = Attempt(loaded="/opt/old/libnvidia-ml.so.535.54.03")
    (finding,) = judge(replace(shut(18), library=replace(HEALTHY.library, attempt=attempt)))
    assert finding.evidence[0] == "kernel module 580.159.04, library 535.54.03"


def test_a_version_that_is_not_known_is_no_mismatch() -> None:
    module = replace(HEALTHY.module, version="")
    assert ids(judge(replace(shut(999), module=module))) == []


def test_gpus_in_other_hands_are_told_with_their_drivers() -> None:
    module = replace(HEALTHY.module, pci=on_bus("vfio-pci", "nouveau"))
    (finding,) = judge(replace(shut(9), module=module))
    assert finding.id == "GPU032"
    assert finding.evidence == ("0000:00:00.0: vfio-pci", "0000:01:00.0: nouveau")


def test_one_gpu_without_the_module_is_a_warning_while_another_has_it() -> None:
    module = replace(HEALTHY.module, pci=on_bus("nvidia", ""))
    (finding,) = judge(replace(HEALTHY, module=module))
    assert finding.id == "GPU034"
    assert finding.evidence == ("0000:01:00.0: no driver",)


def test_a_bus_without_a_gpu_is_told_so() -> None:
    assert ids(judge(replace(shut(9), module=replace(HEALTHY.module, pci=())))) == ["GPU033"]


def test_a_gpu_that_answers_needs_no_bus() -> None:
    assert ids(judge(replace(HEALTHY, module=replace(HEALTHY.module, pci=())))) == []


def test_windows_has_no_module() -> None:
    assert ids(judge(replace(shut(9), module=Module(is_loaded=False, is_wsl=True)))) == []
