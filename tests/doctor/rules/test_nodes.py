from __future__ import annotations

from dataclasses import replace
from errno import EACCES, EPERM
from pathlib import Path

import pytest

from otel_gpu.doctor.facts.nodes import ABSENT, Node, Nodes
from otel_gpu.doctor.facts.process import Process
from otel_gpu.doctor.rules.nodes import judge
from tests.doctor.box import Box
from tests.doctor.cases import HEALTHY, ids, of_box, shut

CONTROL, FIRST = HEALTHY.nodes.control, HEALTHY.nodes.gpus[0]
USER = Process(uid=1000, gids=(1000,))


def of(nodes: Nodes, code: int = 999, process: Process = USER) -> list[str]:
    return ids(judge(replace(shut(code), nodes=nodes, process=process)))


def test_open_devices_give_no_finding() -> None:
    assert ids(judge(HEALTHY)) == []
    assert of(HEALTHY.nodes) == []


def test_a_container_without_devices_is_told_so(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.library()
    box.module()
    box.gpu(0)
    (finding,) = judge(of_box(tmp_path, 9))
    assert finding.id == "GPU020"
    assert finding.evidence[0] == "device files of GPUs: none"


def test_files_that_the_library_made_itself_are_no_finding() -> None:
    assert ids(judge(replace(HEALTHY, nodes=Nodes(ABSENT)))) == []


def test_why_nobody_makes_the_file_is_part_of_the_evidence() -> None:
    params = {**HEALTHY.module.params, "ModifyDeviceFiles": "0"}
    module = replace(HEALTHY.module, params=params)
    (finding,) = judge(replace(shut(9), nodes=Nodes(ABSENT), module=module))
    assert "ModifyDeviceFiles is 0" in finding.evidence[1]
    (finding,) = judge(replace(shut(9), nodes=Nodes(ABSENT), process=USER))
    assert "user 1000 cannot make the file" in finding.evidence[1]


def test_a_masked_file_is_told_from_a_device(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.module()
    box.gpu(0)
    box.write("/dev/nvidiactl")
    box.device("nvidia0")
    (finding,) = judge(of_box(tmp_path, 17))
    assert finding.id == "GPU021"
    assert "not a character device" in finding.evidence[0]


def test_a_mode_that_keeps_us_out_is_told_with_who_we_are() -> None:
    nodes = replace(HEALTHY.nodes, control=replace(CONTROL, errno=EACCES, mode=0o600))
    module = replace(HEALTHY.module, params={"DeviceFileMode": "384"})
    (finding,) = judge(replace(shut(4), nodes=nodes, process=USER, module=module))
    assert finding.id == "GPU022"
    assert finding.evidence == (
        "/dev/nvidiactl has mode 0600, owner 0:0, opening it says EACCES",
        "this process is user 1000, groups 1000",
        "the module makes them with mode 0600 (NVreg_DeviceFileMode)",
    )


def test_a_control_group_is_told_by_eperm() -> None:
    nodes = replace(HEALTHY.nodes, control=replace(CONTROL, errno=EPERM))
    assert of(nodes) == ["GPU023"]


@pytest.mark.parametrize("selinux", [True, False])
def test_a_denial_in_spite_of_the_mode_is_a_security_module_s(*, selinux: bool) -> None:
    nodes = replace(HEALTHY.nodes, control=replace(CONTROL, errno=EACCES))
    process = replace(USER, selinux=selinux)
    (finding,) = judge(replace(shut(4), nodes=nodes, process=process))
    assert finding.id == "GPU024"
    assert ("is enforcing" in finding.evidence[-1]) is selinux


@pytest.mark.parametrize(
    ("shut_one", "found"),
    [
        (Node("nvidia1", EPERM), "GPU023"),
        (Node("nvidia1", EACCES, mode=0o600), "GPU022"),
        (Node("nvidia1", EACCES), "GPU024"),
        (Node("nvidia1", is_device=False), "GPU021"),
    ],
)
def test_gpus_that_are_all_shut_are_an_error_and_some_are_a_warning(
    shut_one: Node, found: str
) -> None:
    assert of(Nodes(CONTROL, (replace(shut_one, name="nvidia0"), shut_one))) == [found]
    assert of(Nodes(CONTROL, (FIRST, shut_one))) == ["GPU026"]


def test_no_gpu_s_file_is_told_with_what_the_module_drives() -> None:
    (finding,) = judge(replace(shut(9), nodes=Nodes(CONTROL)))
    assert finding.id == "GPU025"
    assert finding.evidence == ("device files: 0; GPUs that the kernel module drives: 2",)


def test_fewer_files_than_gpus_are_a_note() -> None:
    (finding,) = judge(replace(HEALTHY, nodes=Nodes(CONTROL, (FIRST,))))
    assert finding.id == "GPU027"
    assert finding.evidence == ("device files: 1; GPUs that the kernel module drives: 2",)


def test_windows_has_no_device_files() -> None:
    module = replace(HEALTHY.module, is_wsl=True)
    assert ids(judge(replace(HEALTHY, module=module, nodes=Nodes(ABSENT)))) == []
