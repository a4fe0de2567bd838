from __future__ import annotations

import os
from pathlib import Path

import pytest

from otel_gpu.doctor.facts.nodes import Node
from otel_gpu.doctor.facts.process import (
    CAP_DAC_OVERRIDE,
    CAP_SYS_ADMIN,
    Namespace,
    Process,
    look_at_process,
)
from tests.doctor.box import Box


def test_the_status_tells_user_groups_and_capabilities(tmp_path: Path) -> None:
    Box(tmp_path).process(1000, "0000000000200000")
    process = look_at_process(tmp_path)
    assert process.uid == 1000
    assert process.gids == (1000, 27)
    assert process.has(CAP_SYS_ADMIN)
    assert not process.has(CAP_DAC_OVERRIDE)


def test_the_real_status_can_be_read() -> None:
    process = look_at_process(Path("/"))
    assert process.uid == os.geteuid()
    assert process.namespace.is_sure


def test_without_proc_the_process_still_knows_itself(tmp_path: Path) -> None:
    process = look_at_process(tmp_path)
    assert process.uid == os.geteuid()
    assert process.capabilities == 0
    assert process.namespace.is_host is None


@pytest.mark.parametrize(
    ("mode", "uid", "gids", "passes"),
    [
        (0o666, 1000, (1000,), True),
        (0o660, 1000, (1000,), False),
        (0o660, 1000, (1000, 44), True),
        (0o600, 7, (7,), True),
        (0o606, 1000, (44,), False),  # the group's bits hold for its members, and no others
        (0o644, 1000, (1000,), False),
    ],
)
def test_a_mode_is_read_as_the_kernel_reads_it(
    mode: int, uid: int, gids: tuple[int, ...], *, passes: bool
) -> None:
    node = Node("nvidia0", mode=mode, uid=7, gid=44)
    assert Process(uid=uid, gids=gids).passes(node) is passes
    assert Process(uid=uid, gids=gids, capabilities=1 << CAP_DAC_OVERRIDE).passes(node)


def test_the_first_namespace_has_a_number_of_its_own(tmp_path: Path) -> None:
    Box(tmp_path).namespace(4026531836)
    assert look_at_process(tmp_path).namespace == Namespace(
        is_host=True,
        is_sure=True,
        evidence="namespace 4026531836 is the first that the kernel made",
    )


def test_every_other_namespace_is_not_the_host_s(tmp_path: Path) -> None:
    Box(tmp_path).namespace(4026532417)
    namespace = look_at_process(tmp_path).namespace
    assert namespace.is_host is False
    assert namespace.is_sure


@pytest.mark.parametrize(("second", "is_host"), [("kthreadd", True), ("sh", False), ("", False)])
def test_a_namespace_that_cannot_be_read_is_guessed_by_names(
    tmp_path: Path, second: str, *, is_host: bool
) -> None:
    box = Box(tmp_path)
    box.write("/proc/1/comm", "systemd\n")
    if second:
        box.write("/proc/2/comm", f"{second}\n")
    namespace = look_at_process(tmp_path).namespace
    assert namespace.is_host is is_host
    assert not namespace.is_sure
    assert "process 1 is systemd" in namespace.evidence


def test_selinux_counts_when_it_is_enforcing(tmp_path: Path) -> None:
    Box(tmp_path).write("/sys/fs/selinux/enforce", "1")
    assert look_at_process(tmp_path).selinux
