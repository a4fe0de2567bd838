"""The words that all rooms share."""

import pytest

from otel_gpu.model import (
    NODE,
    REASONS,
    Answer,
    BackendError,
    Code,
    Device,
    OtelGpuError,
    Query,
    ResourceKey,
    Series,
    Snapshot,
)
from tests.machine import gpu, instance


def test_a_question_is_written_as_it_is_called() -> None:
    assert str(Query("nvmlDeviceGetPowerUsage")) == "nvmlDeviceGetPowerUsage"
    assert str(Query("nvmlDeviceGetClockInfo", (1,))) == "nvmlDeviceGetClockInfo(1)"
    assert str(Query("nvmlDeviceGetFieldValues", (185, 2))) == "nvmlDeviceGetFieldValues(185, 2)"


def test_an_answer_has_a_value_only_when_its_code_is_success() -> None:
    assert Answer(Code.SUCCESS, 0).ok
    assert not Answer(Code.NOT_SUPPORTED, 0).ok


def test_a_gpu_is_named_after_its_device_file_and_not_after_its_place() -> None:
    assert gpu(0).name == "nvidia4"
    assert instance(gpu(0)).name == "nvidia4"


def test_a_gpu_without_a_device_file_has_no_name() -> None:
    assert Device(uuid="GPU-w", index=0, minor=-1).name == ""


def test_an_instance_is_known_by_its_parent() -> None:
    assert instance(gpu()).is_instance
    assert not gpu().is_instance


def test_each_refusal_that_has_a_meaning_has_one_reason() -> None:
    assert Code.SUCCESS not in REASONS
    assert Code.NO_DATA not in REASONS
    assert Code.NOT_READY not in REASONS


def test_an_error_says_what_happened_and_what_to_do() -> None:
    error = BackendError(Code.LIBRARY_NOT_FOUND, "libnvidia-ml.so.1 is not here", "Install it")
    assert str(error) == "libnvidia-ml.so.1 is not here. Install it"
    assert (error.code, error.text, error.remedy) == (
        12,
        "libnvidia-ml.so.1 is not here",
        "Install it",
    )
    assert str(BackendError(1, "not open")) == "not open"
    with pytest.raises(OtelGpuError):
        raise error


def test_series_are_told_apart_by_what_they_are_and_not_by_what_they_hold() -> None:
    one, other = Series({"a": 1}), Series({"a": 1})
    assert one != other
    assert (one.resource, one.start_ns, one.memo) == (NODE, None, {})
    one.memo["text"] = "a=1"
    assert other.memo == {}


def test_the_node_is_the_resource_without_a_gpu() -> None:
    assert ResourceKey() == NODE
    assert ResourceKey("GPU-0") != NODE


def test_an_empty_snapshot_says_nothing() -> None:
    empty = Snapshot()
    assert (empty.readings, empty.gaps, empty.devices, empty.trouble) == ((), (), {}, "")
