from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.doctor.facts.elf import DANGLING, EMPTY, FOREIGN, OTHER_MACHINE, Kind, fault, kind
from tests.doctor.box import FOREIGN as FOREIGN_HEADER
from tests.doctor.box import HEADER


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (HEADER, ""),
        (b"", EMPTY),
        (b"version https://git-lfs.github.com/spec/v1\n", FOREIGN),
        (HEADER[:19], FOREIGN),
        (FOREIGN_HEADER, OTHER_MACHINE),
        (HEADER[:4] + b"\x01" + HEADER[5:], OTHER_MACHINE),  # 32 bits
    ],
)
def test_a_file_is_judged_by_its_header(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "libnvidia-ml.so.1"
    file.write_bytes(content)
    assert fault(file) == said


def test_a_link_that_leads_nowhere_is_told_from_an_empty_file(tmp_path: Path) -> None:
    link = tmp_path / "libnvidia-ml.so.1"
    link.symlink_to("libnvidia-ml.so.580.159.04")
    assert fault(link) == DANGLING


def test_a_folder_cannot_be_read(tmp_path: Path) -> None:
    assert fault(tmp_path) == "cannot be read: Is a directory"


@given(
    st.integers(0, 255), st.sampled_from([(1, "<"), (2, ">")]), st.integers(0, 65535), st.binary()
)
def test_the_machine_is_read_in_the_order_of_bytes_that_the_file_names(
    tmp_path_factory: pytest.TempPathFactory,
    word: int,
    order: tuple[int, str],
    machine: int,
    rest: bytes,
) -> None:
    number, sign = order
    head = b"\x7fELF" + bytes([word, number]) + bytes(10) + struct.pack(f"{sign}HH", 3, machine)
    file = tmp_path_factory.getbasetemp() / "header"
    file.write_bytes(head + rest)
    assert kind(file) == Kind(word, number, machine)
