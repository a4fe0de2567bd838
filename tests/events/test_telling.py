"""The record of an Xid: what it is, on which GPU, whose work it was, and what to do."""

from __future__ import annotations

import pytest

from otel_gpu.events.codes import explained
from otel_gpu.events.record import Severity
from otel_gpu.events.telling import repeated, told
from otel_gpu.model import AttributeValue
from tests.events.box import (
    FIRST,
    NOW_NS,
    PART,
    SECOND,
    TWINS,
    event,
    line,
    machine,
    said,
)


def test_a_record_says_everything_that_is_known() -> None:
    xid = explained(31)
    record = told(line(31, cause=94), machine())
    assert (record.time_ns, record.severity) == (NOW_NS, Severity.WARN)
    assert record.event_name == "nvidia.gpu.xid"
    assert record.body == (
        "Xid 31 (memory page fault) on nvidia4, GPU-0, 0000:3b:00.0, process 735 python: "
        f"{xid.meaning} {xid.action}"
    )
    assert said(record) == {
        "nvidia.gpu.xid": "31",
        "nvidia.gpu.xid.class": "application",
        "nvidia.gpu.xid.name": "memory page fault",
        "nvidia.gpu.xid.meaning": xid.meaning,
        "nvidia.gpu.xid.action": xid.action,
        "hw.id": "GPU-0",
        "hw.name": "nvidia4",
        "hw.type": "gpu",
        "nvidia.gpu.pci.address": "0000:3b:00.0",
        "k8s.pod.name": "train-0",
        "k8s.pod.uid": "u-1",
        "process.pid": 735,
        "process.executable.name": "python",
        "nvidia.gpu.xid.cause": "94",
        "log.record.original": "MMU Fault",
    }


def test_what_is_not_known_is_not_said() -> None:
    record = told(event(79), machine())
    assert record.severity is Severity.FATAL
    assert "process" not in record.body
    left_out = {"process.pid", "process.executable.name", "log.record.original", "hw.parent"}
    assert left_out.isdisjoint(said(record))
    assert not any(key.startswith("nvidia.gpu.mig") for key in said(record))


def test_an_instances_record_is_its_gpus_and_names_the_instance_and_its_owner() -> None:
    record = told(event(43, SECOND, gi=5, ci=0), machine())
    assert "GPU-1, 0000:3c:00.0, MIG 5/0: " in record.body
    assert (said(record)["hw.id"], said(record)["k8s.pod.name"]) == ("GPU-1", "infer-0")
    assert said(record)["nvidia.gpu.mig.profile"] == PART.mig_profile
    assert said(record)["nvidia.gpu.mig.gpu_instance"] == 5
    assert said(record)["nvidia.gpu.mig.compute_instance"] == 0


@pytest.mark.parametrize(("gi", "ci"), [(9, 0xFFFFFFFF), (9, 0), (6, 0)])
def test_an_instance_that_is_not_certain_has_no_owner(gi: int, ci: int) -> None:
    """Two compute instances share GPU instance 9, and nobody knows a GPU instance 6."""
    assert len({part.gpu_instance for part in TWINS}) == 1
    record = told(event(43, SECOND, gi, ci), machine())
    assert "k8s.pod.name" not in said(record)
    assert "nvidia.gpu.mig.profile" not in said(record)
    assert said(record)["nvidia.gpu.mig.gpu_instance"] == gi


def test_a_gpu_that_is_shared_has_no_owner() -> None:
    assert "k8s.pod.name" not in said(told(event(31, SECOND), machine()))


def test_a_code_is_a_string_and_a_pid_a_number_as_the_metrics_have_them() -> None:
    kinds: dict[str, type[AttributeValue]] = {
        key: type(value) for key, value in told(line(31), machine()).attributes
    }
    assert kinds["nvidia.gpu.xid"] is str
    assert kinds["nvidia.gpu.xid.class"] is str
    assert kinds["process.pid"] is int


def test_the_last_of_many_says_how_many_they_were() -> None:
    record = repeated(line(31), 7, machine(), 60.0)
    assert "python came 7 times more within 60 s, of which this is the last: " in record.body
    assert said(record)["nvidia.gpu.xid.repeats"] == 7
    assert said(record)["hw.id"] == FIRST.uuid


@pytest.mark.parametrize(("fatal", "severity"), [(True, Severity.ERROR), (False, Severity.WARN)])
def test_a_switchs_error_is_a_record_of_its_own(*, fatal: bool, severity: Severity) -> None:
    record = told(
        line(20034, switch="nvidia-nvswitch0", fatal=fatal, text="Link 48 LTSSM Fault Up"),
        machine(),
    )
    assert (record.event_name, record.severity) == ("nvidia.nvswitch.sxid", severity)
    assert record.body == "SXid 20034 on nvidia-nvswitch0, 0000:3b:00.0: Link 48 LTSSM Fault Up"
    assert said(record) == {
        "nvidia.nvswitch.sxid": "20034",
        "hw.name": "nvidia-nvswitch0",
        "nvidia.nvswitch.pci.address": "0000:3b:00.0",
        "log.record.original": "Link 48 LTSSM Fault Up",
    }
