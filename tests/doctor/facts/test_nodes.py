from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EPERM
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from otel_gpu.doctor.facts.nodes import ABSENT, Node, Nodes, look_at_nodes
from tests.doctor.box import Box

NOBODY = 65534
CGROUP = Path("/sys/fs/cgroup/devices")


@contextmanager
def nobody() -> Iterator[None]:
    """Be someone without privileges for a while."""
    uid = os.geteuid()
    if uid == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(uid)


def test_a_machine_without_a_driver_has_no_files(tmp_path: Path) -> None:
    nodes = look_at_nodes(tmp_path)
    assert nodes.control == ABSENT
    assert not nodes.control.is_there
    assert nodes.gpus == ()


def test_gpus_are_told_from_the_driver_s_other_files_and_are_in_order(tmp_path: Path) -> None:
    box = Box(tmp_path)
    for name in ("nvidiactl", "nvidia10", "nvidia2", "nvidia-uvm", "nvidia-caps", "nvidia0x"):
        box.device(name)
    nodes = look_at_nodes(tmp_path)
    assert [node.name for node in nodes.gpus] == ["nvidia2", "nvidia10"]
    assert nodes.control.is_open
    assert nodes.open_gpus == nodes.gpus


def test_a_plain_file_at_the_place_of_a_device_is_seen(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.write("/dev/nvidiactl")
    box.device("nvidia0")
    nodes = look_at_nodes(tmp_path)
    assert nodes.control.is_there
    assert not nodes.control.is_device
    assert not nodes.control.is_open
    assert nodes.deciding == (nodes.control,)


def test_a_file_that_the_mode_shuts_says_eacces() -> None:
    with TemporaryDirectory() as folder:  # pytest's own folders are shut to everyone else
        Path(folder).chmod(0o755)
        file = Box(Path(folder)).write("/dev/nvidiactl")
        file.chmod(0o600 if os.geteuid() == 0 else 0)
        with nobody():
            control = look_at_nodes(Path(folder)).control
    assert control.errno == EACCES
    assert "opening it says EACCES" in str(control)


def test_only_the_files_of_all_gpus_together_decide() -> None:
    shut, open_ = Node("nvidia0", EACCES), Node("nvidia1")
    control = Node("nvidiactl")
    assert Nodes(control, (shut, open_)).deciding == (control,)
    assert Nodes(control, (shut,)).deciding == (control, shut)


LOOK = """
import sys, os
from pathlib import Path
from otel_gpu.doctor.facts.nodes import look_at_nodes
Path(sys.argv[1], "cgroup.procs").write_text(str(os.getpid()))
nodes = look_at_nodes(Path(sys.argv[2]))
print(nodes.control.errno, *(node.errno for node in nodes.gpus))
"""


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A control group that forbids /dev/null and allows other devices."""
    folder = CGROUP / f"otel-gpu-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"control groups of version 1 cannot be made here: {error}")
    (folder / "devices.deny").write_text("c 1:3 rw")
    yield folder
    folder.rmdir()


def test_a_file_that_the_control_group_forbids_says_eperm(tmp_path: Path, cgroup: Path) -> None:
    box = Box(tmp_path)
    box.device("nvidiactl")  # /dev/null
    box.link("/dev/nvidia0", "/dev/zero")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", LOOK, str(cgroup), str(tmp_path)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(EPERM), "0"]
