r"""What a line of the kernel log says of a GPU. Pure: a text in, a Happening or nothing out.

The forms that drivers write (kernel_rc.c and osinit.c of the open kernel modules, and older ones):

    NVRM: Xid (PCI:0000:3b:00 GPU-I:05 GPU-CI:00): 43, pid=735, name=python, Ch 00000010
    NVRM: Xid (PCI:0000:3b:00): 45, pid='<unknown>', name=<unknown>, ... caused by previous Xid 94
    NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.
    NVRM: The NVIDIA GPU 0000:3b:00.0\nNVRM: (PCI ID: 10de:2335) installed in this system has\nNVRM:
        fallen off the bus and is not responding to commands.
    nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 48 LTSSM Fault Up
"""

from __future__ import annotations

import re

from otel_gpu.events.happening import NO_INSTANCE, Happening, Source

FALLEN = 79
BEGINNING = "NVRM: The NVIDIA GPU "
"""How a text begins that some drivers write in several lines, the address in the first."""

_ADDRESS = r"(?P<address>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.[0-7])?"
_XID = re.compile(
    rf"NVRM: Xid \((?:PCI:)?{_ADDRESS}(?: GPU-I:(?P<gi>\d{{1,4}}))?(?: GPU-CI:(?P<ci>\d{{1,4}}))?\)"
    r": (?P<code>\d{1,9})(?:, (?P<text>.*)|\s*)$",
    re.DOTALL,
)
_PROCESS = re.compile(r"pid='?(?P<pid>[^,']*)'?(?:, name=(?P<name>[^,]*))?(?:, |$)")
_CAUSE = re.compile(r"caused by previous Xid (\d{1,9})\s*$")
_FALLEN = re.compile(
    rf"NVRM: (?:The NVIDIA )?GPU {_ADDRESS}\b.*\bfallen off the bus\b",
    re.DOTALL,
)
_SWITCH = re.compile(
    rf"(?P<switch>nvidia-nvswitch\d{{1,4}}): SXid \((?:PCI:)?{_ADDRESS}\)"
    r": (?P<code>\d{1,9}), (?P<text>(?P<severity>Fatal|Non-fatal), .*)$",
    re.DOTALL,
)
_UNKNOWN = frozenset({"", "<unknown>"})


def happening(line: str, time_ns: int, before: str = "") -> Happening | None:
    """Read a line; None when it tells of no Xid, SXid or lost GPU.

    `before` is the line before it, in case this one goes on with it. Only the beginning of a line
    is believed: other parts of the kernel write names there that a user chose.
    """
    return _xid(line, time_ns) or _switch(line, time_ns) or _fallen(line, time_ns, before)


def _xid(line: str, time_ns: int) -> Happening | None:
    found = _XID.match(line)
    if found is None:
        return None
    text = found["text"] or ""
    process = _PROCESS.match(text)
    cause = _CAUSE.search(text)
    return Happening(
        source=Source.KERNEL,
        code=int(found["code"]),
        time_ns=time_ns,
        pci_address=_sysfs(found["address"]),
        gpu_instance=int(found["gi"]) if found["gi"] else NO_INSTANCE,
        compute_instance=int(found["ci"]) if found["ci"] else NO_INSTANCE,
        pid=_pid(process["pid"]) if process else None,
        process=_name(process["name"]) if process else "",
        cause=int(cause[1]) if cause else None,
        text=_one_line(text),
    )


def _switch(line: str, time_ns: int) -> Happening | None:
    """Read an SXid. The driver's lines with its registers, of the same code, are left out."""
    found = _SWITCH.match(line)
    if found is None:
        return None
    return Happening(
        source=Source.KERNEL,
        code=int(found["code"]),
        time_ns=time_ns,
        pci_address=_sysfs(found["address"]),
        text=_one_line(found["text"]),
        switch=found["switch"],
        fatal=found["severity"] == "Fatal",
    )


def _fallen(line: str, time_ns: int, before: str) -> Happening | None:
    whole = f"{before}\n{line}" if before.startswith(BEGINNING) else line
    found = _FALLEN.match(whole)
    if found is None:
        return None
    return Happening(
        source=Source.NOTE,
        code=FALLEN,
        time_ns=time_ns,
        pci_address=_sysfs(found["address"]),
        text=_one_line(whole.replace("NVRM:", "")),
    )


def _sysfs(address: str) -> str:
    """Write an address as sysfs does. The driver leaves out the function, which is 0 for a GPU."""
    domain, bus, device = address.lower().split(":")
    return f"{int(domain, 16):04x}:{bus}:{device}.0"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _pid(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[1-9][0-9]{0,8}", text) else None


def _name(text: str | None) -> str:
    return "" if text is None or text in _UNKNOWN else text
