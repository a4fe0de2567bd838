from __future__ import annotations

import ctypes
import marshal
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.backends.nvml import nvml
from otel_gpu.backends.values import field_answer, plain, union_answer
from otel_gpu.model import Answer, Code
from tests.backends.library import since_r570

DOUBLE, UINT, ULONG, ULONGLONG, LONGLONG, INT, USHORT = range(7)
ENERGY, MEMORY_TEMPERATURE, SLOWDOWN_LIMIT, ECC_CORRECTED = 83, 82, 194, 3


def entry(field: int, kind: int, code: int = 0, latency: int = 5, **value: Any) -> Any:
    """Fill the struct of a field as a driver would: its head, and one member of its value."""
    filled = nvml.c_nvmlFieldValue_t(
        fieldId=field, valueType=kind, nvmlReturn=code, latencyUsec=latency
    )
    for member, number in value.items():
        setattr(filled.value, member, number)
    return filled


@pytest.mark.parametrize(
    ("kind", "member", "value"),
    [
        (DOUBLE, "dVal", 12.5),
        (UINT, "uiVal", 2**32 - 1),
        (ULONG, "ulVal", 2**40),
        (ULONGLONG, "ullVal", 2**64 - 1),
        (LONGLONG, "sllVal", -(2**40)),
        (INT, "siVal", -8),
        pytest.param(USHORT, "usVal", 2**16 - 1, marks=since_r570),
    ],
)
def test_a_fields_value_is_read_by_its_own_type(kind: int, member: str, value: Any) -> None:
    assert field_answer(entry(ENERGY, kind, **{member: value})) == Answer(0, value)


def test_a_negative_limit_stays_negative() -> None:
    assert field_answer(entry(SLOWDOWN_LIMIT, INT, siVal=-2)) == Answer(0, -2)


@pytest.mark.parametrize("code", [2, 3, 4, 15, 999])
def test_a_refused_field_has_no_value_whatever_stands_in_its_struct(code: int) -> None:
    assert field_answer(entry(ENERGY, ULONGLONG, code=code, ullVal=7)) == Answer(code)


def test_a_type_from_the_future_is_not_guessed() -> None:
    assert field_answer(entry(ENERGY, 7, ullVal=7)) == Answer(Code.ARGUMENT_VERSION_MISMATCH)


def test_the_memory_temperature_is_a_whole_number_even_where_its_type_says_otherwise() -> None:
    assert field_answer(entry(MEMORY_TEMPERATURE, DOUBLE, uiVal=53)) == Answer(0, 53)


class TestTheCountsOfEcc:
    def test_count_as_recorded_on_an_h200(self) -> None:
        recorded = entry(ECC_CORRECTED, ULONGLONG, latency=0, ullVal=0)
        assert field_answer(recorded) == Answer(0, 0)

    def test_are_whole_numbers_where_the_driver_left_the_type_out(self) -> None:
        assert field_answer(entry(ECC_CORRECTED, DOUBLE, latency=90, ullVal=3)) == Answer(0, 3)
        assert field_answer(entry(ECC_CORRECTED, DOUBLE, latency=90, ullVal=0)) == Answer(0, 0)
        assert field_answer(entry(ECC_CORRECTED, DOUBLE, latency=0, ullVal=3)) == Answer(0, 3)

    def test_are_not_supported_where_the_driver_wrote_nothing(self) -> None:
        untouched = entry(ECC_CORRECTED, DOUBLE, latency=0)
        assert field_answer(untouched) == Answer(Code.NOT_SUPPORTED)


def test_a_union_of_an_older_pynvml_lacks_the_newest_member() -> None:
    class Older(ctypes.Union):
        _fields_: ClassVar = [("dVal", ctypes.c_double), ("uiVal", ctypes.c_uint)]

    assert union_answer(Older(uiVal=3), UINT) == Answer(0, 3)
    assert union_answer(Older(), USHORT) == Answer(Code.ARGUMENT_VERSION_MISMATCH)


def test_a_struct_becomes_its_members_by_name() -> None:
    memory = nvml.c_nvmlMemory_v2_t(version=nvml.nvmlMemory_v2, total=100, reserved=1, used=2)
    assert plain(memory) == {
        "version": nvml.nvmlMemory_v2,
        "total": 100,
        "reserved": 1,
        "free": 0,
        "used": 2,
    }


@since_r570
def test_structs_inside_structs_and_arrays_become_dicts_and_lists() -> None:
    info = nvml.c_nvmlGpuFabricInfo_v2_t()
    info.clusterUuid[:] = range(16)
    assert plain(info)["clusterUuid"] == list(range(16))
    features = plain(nvml.c_nvmlGridLicensableFeatures_v4_t())
    assert features["gridLicensableFeatures"][0]["licenseExpiry"]["year"] == 0


def test_a_pynvml_process_becomes_its_members_and_no_memory_stays_none() -> None:
    process = nvml.nvmlStructToFriendlyObject(nvml.c_nvmlProcessInfo_t(pid=7, gpuInstanceId=1))
    process.usedGpuMemory = None
    assert plain([process]) == [
        {"pid": 7, "usedGpuMemory": None, "gpuInstanceId": 1, "computeInstanceId": 0}
    ]


def test_members_of_a_base_and_of_the_struct_itself_are_there_and_private_ones_are_not() -> None:
    class Base(ctypes.Structure):
        _fields_: ClassVar = [("first", ctypes.c_int), ("_reserved", ctypes.c_int)]

    class Derived(Base):
        _fields_: ClassVar = [("second", ctypes.c_int)]

    assert plain(Derived(first=1, second=2)) == {"first": 1, "second": 2}


def test_text_that_is_not_utf8_does_not_stop_a_sweep() -> None:
    info = nvml.nvmlPciInfo_t()
    ctypes.memmove(ctypes.addressof(info), b"\xff:06", 4)
    assert plain(info)["busIdLegacy"] == "\ufffd:06"
    assert plain(b"\xffH200") == "\ufffdH200"


def test_what_means_nothing_elsewhere_is_none() -> None:
    assert plain([nvml.c_nvmlDevice_t(), ctypes.pointer(ctypes.c_int(3))]) == [None, None]


def test_packed_numbers_are_unpacked() -> None:
    assert plain([ctypes.c_uint(3), ctypes.c_double(1.5), (ctypes.c_int * 2)(4, 5)]) == [
        3,
        1.5,
        [4, 5],
    ]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=6,
    )
)
def test_what_is_plain_already_stays_as_it_is_and_travels(value: Any) -> None:
    assert marshal.loads(marshal.dumps(plain(value))) == value  # noqa: S302 - our own bytes
