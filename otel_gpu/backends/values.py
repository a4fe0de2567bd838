"""What NVML hands over, as plain values: ctypes structs, unions and arrays become dicts and lists.

Nothing here calls the driver, and nothing imports pynvml: the values come with their own types.
"""

from __future__ import annotations

import ctypes
from functools import singledispatch
from typing import Any

from otel_gpu.model import Answer, Code

UNION_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""The member of `nvmlValue_t` that holds the value, by `nvmlValueType_t` (nvml.h)."""

DOUBLE = 0
ECC_FIELDS = range(1, 32)
MEMORY_TEMPERATURE = 82


@singledispatch
def plain(value: Any) -> Any:
    """Make of anything what `marshal` and JSON carry, with struct members by their NVML names.

    A pointer means nothing in another process: None. Bytes that are not UTF-8 are replaced.
    """
    if value is None or isinstance(value, int | float | str):
        return value
    if hasattr(type(value), "contents"):  # a pointer: it has a __dict__ too, with nothing in it
        return None
    inner = vars(value).items()  # pynvml's stand-in for a struct, which it uses for processes
    return {name: plain(member) for name, member in inner if public(name)}


@plain.register
def plain_text(value: bytes) -> str:
    """Decode, whatever a board's maker wrote there."""
    return value.decode(errors="replace")


@plain.register(ctypes.c_uint.__mro__[1])  # what c_uint, c_double and their like have in common
def plain_number(value: Any) -> Any:
    """Unpack a number that pynvml left packed."""
    return plain(value.value)


@plain.register
def plain_dict(value: dict) -> dict[str, Any]:  # type: ignore[type-arg] # dispatch takes no generic
    """Keep the names."""
    return {name: plain(member) for name, member in value.items()}


@plain.register(list)
@plain.register(tuple)
@plain.register(ctypes.Array)
def plain_list(value: Any) -> list[Any]:
    """Keep the order."""
    return [plain(element) for element in value]


@plain.register(ctypes.Structure)
@plain.register(ctypes.Union)
def plain_struct(value: Any) -> dict[str, Any]:
    """Name every public member, those of the bases first.

    Members are read as they are: pynvml's own accessor fails on text that is not UTF-8.
    """
    fields = (vars(base).get("_fields_", ()) for base in reversed(type(value).__mro__))
    names = [name for group in fields for name, *_ in group if public(name)]
    return {name: plain(object.__getattribute__(value, name)) for name in names}


def public(name: str) -> bool:
    """Tell a member of the interface from a private one."""
    return not name.startswith("_")


def field_answer(entry: Any) -> Answer:
    """Read one `nvmlFieldValue_t` (nvml.h): its own return code, its value by its own type.

    Drivers have been seen to leave the type unset for the ECC ids (1-31), to leave these entries
    untouched altogether where ECC is off, and to give a wrong type for the memory temperature.
    An ECC entry that shows no sign of having been written is not a count of 0: not supported.
    """
    if entry.nvmlReturn:
        return Answer(entry.nvmlReturn)
    if entry.fieldId == MEMORY_TEMPERATURE:
        return Answer(Code.SUCCESS, entry.value.uiVal)
    if entry.fieldId in ECC_FIELDS and entry.valueType == DOUBLE:
        untouched = not (entry.latencyUsec or entry.value.ullVal)
        return Answer(Code.NOT_SUPPORTED) if untouched else Answer(0, entry.value.ullVal)
    return union_answer(entry.value, entry.valueType)


def union_answer(value: Any, kind: int) -> Answer:
    """Read the member of an `nvmlValue_t` that a value type points to.

    A type that this pynvml does not know is code 25 (argument version mismatch).
    """
    name = union_member(kind)
    if not hasattr(value, name):
        return Answer(Code.ARGUMENT_VERSION_MISMATCH)
    return Answer(Code.SUCCESS, getattr(value, name))


def union_member(kind: int) -> str:
    """Name the member of an `nvmlValue_t` that a value type points to; "" when it is not known."""
    return UNION_MEMBERS[kind] if kind < len(UNION_MEMBERS) else ""
