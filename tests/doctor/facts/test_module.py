from __future__ import annotations

from pathlib import Path

import pytest

from otel_gpu.doctor.facts.module import Module, PciGpu, look_at_module, parameters
from tests.doctor.box import CLOSED_MODULE, OPEN_MODULE, PARAMS, Box


def test_where_nothing_is_shown_nothing_is_known(tmp_path: Path) -> None:
    assert look_at_module(tmp_path) == Module()


def test_a_kernel_without_the_module_says_so(tmp_path: Path) -> None:
    Box(tmp_path).kernel()
    module = look_at_module(tmp_path)
    assert module.is_loaded is False
    assert module.pci == ()
    assert module.gpus is None


@pytest.mark.parametrize("text", [OPEN_MODULE, CLOSED_MODULE])
def test_both_kinds_of_module_tell_their_version(tmp_path: Path, text: str) -> None:
    Box(tmp_path).module("570.86.10", text)
    module = look_at_module(tmp_path)
    assert module.is_loaded is True
    assert module.version == "570.86.10"


def test_sysfs_tells_the_version_where_proc_is_hidden(tmp_path: Path) -> None:
    Box(tmp_path).write("/sys/module/nvidia/version", "580.159.04\n")
    assert look_at_module(tmp_path).version == "580.159.04"


def test_gpus_are_told_with_the_driver_that_holds_them(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.module()
    box.gpu(1)
    box.gpu(2, "vfio-pci")
    box.gpu(3, "")
    box.write("/sys/bus/pci/devices/0000:09:00.0/vendor", "0x10de\n")  # its sound device
    box.write("/sys/bus/pci/devices/0000:09:00.0/class", "0x040300\n")
    box.write("/sys/bus/pci/devices/0000:0a:00.0/vendor", "0x8086\n")
    box.write("/sys/bus/pci/devices/0000:0a:00.0/class", "0x030000\n")
    module = look_at_module(tmp_path)
    assert module.gpus == ("0000:01:00.0",)
    assert module.pci == (
        PciGpu("0000:01:00.0", "nvidia"),
        PciGpu("0000:02:00.0", "vfio-pci"),
        PciGpu("0000:03:00.0", ""),
    )


def test_parameters_are_names_and_values_without_their_quotes() -> None:
    params = parameters(PARAMS)
    assert params["RmProfilingAdminOnly"] == "0"
    assert params["DeviceFileMode"] == "438"
    assert params["RegistryDwords"] == ""


def test_windows_subsystem_for_linux_is_known_by_its_device(tmp_path: Path) -> None:
    Box(tmp_path).device("dxg")
    assert look_at_module(tmp_path).is_wsl
