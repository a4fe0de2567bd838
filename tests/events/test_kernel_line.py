"""Every form in which drivers write of a lost or failing GPU is read, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.events.happening import Happening, Source
from otel_gpu.events.kernel_line import happening

AT_NS = 1_700_000_000_000_000_000

H200 = (
    "NVRM: Xid (PCI:0000:00:06): 31, pid=735, name=xid, channel 0x0000000a, intr 00000000. "
    "MMU Fault: ENGINE GRAPHICS GPC1 GPCCLIENT_T1_8 faulted @ 0x7fff_dead0000. Fault is of type "
    "FAULT_PDE ACCESS_TYPE_VIRT_WRITE"
)

PROBED = (
    "NVRM: The NVIDIA GPU 0000:3b:00.0\nNVRM: (PCI ID: 10de:2335) installed in this system has\n"
    "NVRM: fallen off the bus and is not responding to commands."
)


def read(line: str, before: str = "") -> Happening:
    found = happening(line, AT_NS, before)
    assert found is not None
    return found


def test_the_line_that_an_h200_wrote_is_read() -> None:
    found = read(H200)
    assert (found.source, found.code, found.time_ns) == (Source.KERNEL, 31, AT_NS)
    assert (found.pci_address, found.pid, found.process) == ("0000:00:06.0", 735, "xid")
    assert found.text == H200.partition("31, ")[2]
    assert (found.gpu_instance, found.compute_instance, found.cause) == (-1, -1, None)


@pytest.mark.parametrize(
    ("place", "gpu_instance", "compute_instance"),
    [(" GPU-I:05 GPU-CI:00", 5, 0), (" GPU-I:13", 13, -1), ("", -1, -1)],
)
def test_a_mig_instance_is_read(place: str, gpu_instance: int, compute_instance: int) -> None:
    found = read(f"NVRM: Xid (PCI:0000:3b:00{place}): 43, pid=1, name=a, Ch 00000010")
    assert found.pci_address == "0000:3b:00.0"
    assert (found.gpu_instance, found.compute_instance) == (gpu_instance, compute_instance)


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("PCI:0018:01:00", "0018:01:00.0"),
        ("PCI:00000000:3B:00", "0000:3b:00.0"),
        ("0000:01:00", "0000:01:00.0"),
        ("PCI:10000:0A:00", "10000:0a:00.0"),
    ],
)
def test_an_address_is_written_as_sysfs_does(written: str, address: str) -> None:
    assert read(f"NVRM: Xid ({written}): 13, Graphics Exception").pci_address == address


@pytest.mark.parametrize(
    ("words", "pid", "process"),
    [
        ("pid=735, name=python, Ch 1", 735, "python"),
        ("pid='735', name=python, Ch 1", 735, "python"),
        ("pid='<unknown>', name=<unknown>, Ch 1", None, ""),
        ("pid=735, Ch 1", 735, ""),
        ("pid=735", 735, ""),
        ("pid=0, name=, Ch 1", None, ""),
        ("pid=99999999999999999999, name=x, Ch 1", None, "x"),
        ("Ch 1, pid=735, name=not this", None, ""),
        ("GPU has fallen off the bus.", None, ""),
    ],
)
def test_a_process_is_read_where_it_is_known(words: str, pid: int | None, process: str) -> None:
    found = read(f"NVRM: Xid (PCI:0000:3b:00): 79, {words}")
    assert (found.pid, found.process, found.text) == (pid, process, words)


def test_the_xid_that_it_follows_is_read() -> None:
    found = read(
        "NVRM: Xid (PCI:0000:3b:00): 45, pid=7, name=x, Ch 00000008 caused by previous Xid 149"
    )
    assert (found.code, found.cause) == (45, 149)


def test_a_code_may_stand_alone() -> None:
    assert (read("NVRM: Xid (PCI:0000:3b:00): 62").code, read(H200).code) == (62, 31)


def test_the_text_of_nvlink_is_kept() -> None:
    text = "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000)"
    assert read(f"NVRM: Xid (PCI:0018:01:00): 149, {text}").text == text


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("", "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus."),
        ("", PROBED),
        (
            "NVRM: The NVIDIA GPU 0000:3b:00.0 (PCI ID: 10de:2335)\nNVRM: installed in this system",
            "NVRM: has fallen off the bus and is not responding to commands.",
        ),
        (
            "NVRM: The NVIDIA GPU 0000:3b:00.0 (PCI ID: 10de:1e07) installed in this",
            "NVRM: system has fallen off the bus and is not responding to commands.",
        ),
    ],
)
def test_a_lost_gpu_is_noted_as_xid_79(before: str, line: str) -> None:
    found = read(line, before)
    assert (found.source, found.code, found.pci_address) == (Source.NOTE, 79, "0000:3b:00.0")
    assert "fallen off the bus" in found.text
    assert "NVRM" not in found.text


def test_a_lost_gpu_of_which_nobody_says_which_is_nothing() -> None:
    assert happening("NVRM: has fallen off the bus and is not responding", AT_NS) is None
    assert happening("NVRM: GPU has fallen off the bus.", AT_NS, "NVRM: GPU 0000:3b:00.0") is None


@pytest.mark.parametrize("word", ["Fatal", "Non-fatal"])
def test_a_switchs_error_is_told_apart(word: str) -> None:
    found = read(f"nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, {word}, Link 48 LTSSM Fault")
    assert (found.switch, found.code, found.fatal) == ("nvidia-nvswitch3", 20034, word == "Fatal")
    assert (found.pci_address, found.text) == ("0000:05:00.0", f"{word}, Link 48 LTSSM Fault")


@pytest.mark.parametrize(
    "line",
    [
        # the registers of an SXid that was told already
        "nvidia-nvswitch2: SXid (PCI:0000:07:00.0): 20034, Severity 1 Engine instance 60",
        "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Data {0x10000000, 0x10000000}",
        # other words of the driver
        "NVRM: GPU at PCI:0000:3b:00: GPU-b7d0fb8c-8de1-4a4c-b4c1-5d5d8a4f1d0e",
        "NVRM: GPU 0000:3b:00.0: GPU serial number is 1653723052734.",
        "NVRM: The NVIDIA GPU 0000:3b:00.0 (PCI ID: 10de:1180)\nNVRM: is not supported",
        "NVRM: API mismatch: the client has the version 580.65.06",
        "NVRM: Xid (PCI:0000:3b:00): , nothing",
        "NVRM: Xid (PCI:here): 31, nothing",
        "",
        # a user's file, in a line of the kernel's: only the beginning is believed
        "x[7]: segfault at 0 ip 1 sp 2 error 4 in NVRM: Xid (PCI:0000:3b:00): 79, gone",
        "x: nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 1",
    ],
)
def test_other_lines_are_nothing(line: str) -> None:
    assert happening(line, AT_NS) is None


PIECES = [
    *("NVRM: ", "Xid (", "PCI:", "0000:3b:00", " GPU-I:", " GPU-CI:", "): ", "79, ", "pid="),
    *("name=", "'<unknown>'", "caused by previous Xid ", "GPU ", "has fallen off the bus.", "\n"),
    *("nvidia-nvswitch0: SXid (", "Fatal, ", "The NVIDIA GPU ", "99999999999", "-1", ".0"),
    *("\0", "\u096d"),
]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5)), st.text(max_size=60))
def test_whatever_a_line_is_it_never_fails_and_what_it_gives_can_be_sent(
    pieces: list[str], before: str
) -> None:
    found = happening("".join(pieces), AT_NS, before)
    if found is not None:
        numbers = (found.code, found.pid, found.cause, found.gpu_instance, found.compute_instance)
        assert all(number is None or -1 <= number < 2**31 for number in numbers)
        assert found.pci_address.count(":") == 2
        assert "\n" not in found.text + found.process


ADDRESSES = st.builds(
    "{:04x}:{:02x}:{:02x}".format, st.integers(0, 0xFFFF), st.integers(0, 255), st.integers(0, 31)
)


@given(
    ADDRESSES,
    st.integers(1, 999),
    st.integers(1, 4_194_304),
    st.text("abcxyz[]<>:_-. ", min_size=1, max_size=15),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30),
)
def test_what_a_driver_writes_is_read_back(
    address: str, code: int, pid: int, name: str, text: str
) -> None:
    found = read(f"NVRM: Xid (PCI:{address}): {code}, pid={pid}, name={name}, {text}")
    assert (found.pci_address, found.code, found.pid) == (f"{address}.0", code, pid)
    assert found.process == ("" if name == "<unknown>" else name)
