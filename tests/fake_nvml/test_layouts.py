"""The structs of the C library are those of pynvml, but for what pynvml is known to have wrong."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pytest

from otel_gpu.backends.nvml import nvml
from tests.fake_nvml.library import Build
from tests.fake_nvml.machine import FakeNvml
from tests.fake_nvml.raw import told

Member = tuple[str, int, int]  # name, offset, size

KNOWN = {
    # nvml.h 13.5: nvmlGpuFabricState_t is an unsigned char; pynvml reads the padding with it.
    # In pynvml 12.535 the first one has room for a UUID in text, and an older name.
    "nvmlGpuFabricInfo_t": {"clusterUuid", "status", "cliqueId", "partitionId", "state"},
    "nvmlGpuFabricInfo_v2_t": {"state"},
    "nvmlGpuFabricInfo_v3_t": {"state"},
    # nvml.h 13.5: the struct has no version; pynvml 13.615 looks for the flag behind one.
    "nvmlUnrepairableMemory_v1_t": {"bUnrepairableMemory", "version", "unrepairableMemory"},
    # Other names for the same members.
    "nvmlEncoderSession_t": {"averageLatency", "encodeLatency"},
    "nvmlRemappedRowsInfo_v2_t": {"bFailureOccurred", "bfailureOccurred"},
}
"""By struct: the members in which pynvml differs from nvml.h, which the library follows."""


def members(struct: Any, base: int = 0) -> Iterator[Member]:
    """Give a struct's members, those of inner structs in their places."""
    for name, kind, *_ in struct._fields_:
        offset = base + vars(struct)[name].offset
        if isinstance(kind, type) and issubclass(kind, ctypes.Structure):
            yield from members(kind, offset)
        else:
            yield name, offset, ctypes.sizeof(kind)


@pytest.fixture(scope="module")
def layouts(build: Build, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Give what the library says of its structs: size, then name, offset and size of each member"""
    fake = FakeNvml(tmp_path_factory.mktemp("layouts") / "machine", build(()))
    text = told(
        fake,
        """
        text = ctypes.create_string_buffer(1 << 16)
        library.fake_nvml_layouts(text, len(text))
        result = text.value.decode()
        """,
    )
    rows = (line.split() for line in text.splitlines())
    return {name: [int(size), *triples(rest)] for name, size, *rest in rows}


def triples(words: list[str]) -> Iterator[Member]:
    """Read a description's members."""
    for name, offset, size in zip(words[::3], words[1::3], words[2::3], strict=True):
        yield name, int(offset), int(size)


def test_each_struct_of_pynvml_has_the_same_members_in_the_same_places(
    layouts: dict[str, list[Any]],
) -> None:
    found = {}
    for name, (size, *described) in layouts.items():
        struct = getattr(nvml, f"c_{name}", None) or getattr(nvml, name, None)
        if struct is not None:  # pynvml has no longer the first ones, or not yet the newest
            differ = {one[0] for one in {*members(struct)} ^ {*described}}
            differ |= {"size"} if ctypes.sizeof(struct) != size else set()
            found[name] = differ - KNOWN.get(name, set()) - ({"size"} if name in KNOWN else set())
    assert len(found) > 15
    assert not {name: differ for name, differ in found.items() if differ}
