"""Odd numbers for every source of `facts.py`, and the boards on which they are planted.

No two numbers of a unit are alike on the whole machine, and each is another in the next round.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from fractions import Fraction

from otel_gpu.model import Query
from tests.fake_nvml.facts import (
    BLACKWELL,
    FIELD,
    HOPPER,
    SLICE,
    SOURCES,
    VOLTA,
    Source,
)
from tests.fake_nvml.machine import Device, FakeNvml, FieldType, Gpu, Values
from tests.fake_nvml.units import UNITS

Raw = Mapping[Source, int | Fraction]

P2P = "nvmlDeviceGetP2PStatus"  # in the file, of a GPU and the index of another one
MIG_MODE = "nvmlDeviceGetMigMode"
FANS = 8
SLOT = 3
LINKS = {HOPPER: 36, VOLTA: 6, BLACKWELL: 18}  # nvml.h has room for 36
EIGHTHS = 8  # doubles are planted as odd eighths, which are exact and never whole
STRIDE = 7  # so far is the next round's number; it shares no factor with how many there are
RARE = 4  # once in so many rounds, what is rare is not 0

UUIDS = {HOPPER: "GPU-hopper", VOLTA: "GPU-volta", BLACKWELL: "GPU-blackwell", SLICE: "MIG-slice"}
MODELS = {HOPPER: "NVIDIA H200", VOLTA: "Tesla V100", BLACKWELL: "NVIDIA GB200"}
BASICS: Mapping[str, Mapping[str, Values]] = {
    HOPPER: {
        "nvmlDeviceGetArchitecture": 9,
        "nvmlDeviceGetCudaComputeCapability": (9, 0),
        "nvmlDeviceGetSerial": "1652023",
        "nvmlDeviceGetVbiosVersion": "96.00.A5.00.1A",
        "nvmlDeviceGetGspFirmwareVersion": "580.159.05",
        "nvmlDeviceGetBoardPartNumber": "692-2G520-0282-001",
        f"{FIELD}(91,0)": {"uint": LINKS[HOPPER]},
        f"{FIELD}(166,0)": {"uint": 6},  # nvml.h, NVML_NVLINK_VERSION_4_0
    },
    VOLTA: {
        "nvmlDeviceGetArchitecture": 5,
        "nvmlDeviceGetCudaComputeCapability": (7, 0),
        "nvmlDeviceGetSerial": "0320718",
        "nvmlDeviceGetVbiosVersion": "88.00.4F.00.09",
        "nvmlDeviceGetBoardPartNumber": "900-2G503-0000-000",
        f"{FIELD}(91,0)": {"uint": LINKS[VOLTA]},
        f"{FIELD}(166,0)": {"uint": 2},
    },
    BLACKWELL: {
        "nvmlDeviceGetArchitecture": 10,
        "nvmlDeviceGetCudaComputeCapability": (10, 0),
        "nvmlDeviceGetC2cModeInfoV": {"isC2cEnabled": 1},
        f"{FIELD}(91,0)": {"uint": LINKS[BLACKWELL]},
        f"{FIELD}(166,0)": {"uint": 7},  # nvml.h, NVML_NVLINK_VERSION_5_0
    },
}
WHOLE_GPU = {"decoderCount": 8, "encoderCount": 4, "jpegCount": 8, "ofaCount": 2}

C_NAMES = {
    "nvmlDeviceGetComputeRunningProcesses": "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses": "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses": "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    "nvmlDeviceGetGridLicensableFeatures": "nvmlDeviceGetGridLicensableFeatures_v4",
}
"""What pynvml's functions call, where that has another name."""

TIMED = {
    "nvmlDeviceGetSamples": 1,
    "nvmlDeviceGetProcessUtilization": 0,
    "nvmlDeviceGetProcessesUtilizationInfo": 0,
}
"""Which argument says since when, and is none by which the file tells questions apart."""

FIELD_TYPES: Mapping[str, FieldType] = {"degC": "int", "mW": "uint"}


def boards(fake: FakeNvml) -> dict[str, Device]:
    """Put in a Hopper with an instance, a Volta and a Blackwell; nothing is planted yet."""
    gpus: dict[str, Gpu] = {}
    for index, (board, basics) in enumerate(BASICS.items()):
        gpus[board] = gpu = fake.gpu(index, UUIDS[board], MODELS[board])
        gpu.says("nvmlDeviceGetNumFans", FANS)
        gpu.says("nvmlDeviceGetGpuInstanceProfileInfoV(4)", WHOLE_GPU)
        for call, values in basics.items():
            gpu.says(call, values)
    gpus[HOPPER].partitioned({SLOT: UUIDS[SLICE]}, f"{MODELS[HOPPER]} MIG 1g.18gb")
    return {**gpus, SLICE: gpus[HOPPER].instances[SLOT]}


def on(board: str) -> tuple[Source, ...]:
    """Give the sources that a board has."""
    return tuple(source for source in SOURCES if board in source.boards)


def numbers(turn: int) -> dict[str, dict[Source, int | Fraction]]:
    """Give each source of each board its number in a round.

    They count down, so that the total of the memory, which stands first, is more than its parts.
    """
    places: Counter[tuple[str, bool]] = Counter()
    raw: dict[str, dict[Source, int | Fraction]] = defaultdict(dict)
    for board in UUIDS:
        for source in on(board):
            kind = (source.unit, source.real)
            raw[board][source] = odd(source, places[kind], turn)
            places[kind] += 1
    return raw


def odd(source: Source, place: int, turn: int) -> int | Fraction:
    """Give the number of the source that stands in some place among those of its unit."""
    if source.unit == "flag":  # there are two values: over the rounds, each has its own pattern
        return (place + 1) >> turn & 1
    if source.unit == "rare" and turn % RARE != 1:
        return 0
    most = UNITS[source.unit].most * (EIGHTHS if source.real else 1)
    count = (most + 1) // 2
    assert place < count, f"there are not enough odd numbers for what is in {source.unit}"
    number = 2 * (count - 1 - (place + STRIDE * turn) % count) + 1
    return Fraction(number, EIGHTHS) if source.real else number


def plant(device: Device, raw: Raw) -> None:
    """Have a board answer with these numbers."""
    whole: dict[Query, dict[str, int]] = defaultdict(dict)
    rows: dict[Query, list[int]] = defaultdict(list)
    for source, value in raw.items():
        query = source.query
        if isinstance(source.member, str):
            whole[query][source.member] = int(value)
        elif isinstance(source.member, int):
            rows[query].append(int(value))
        elif query.call == FIELD:
            number, scope = query.args
            device.field(number, int(value), FIELD_TYPES.get(source.unit, "ull"), scope)
        elif source.real:
            device.gpm(query.args[0], float(value))
        else:
            device.says(line(query), int(value))
    for query, members in whole.items():
        device.says(line(query), members)
    for query, row in rows.items():
        device.says(line(query), tuple(row))


def line(query: Query) -> str:
    """Write a question as the text file does, by the name of the function in C."""
    name = C_NAMES.get(query.call, query.call)
    args = query.args[: TIMED.get(query.call)]
    return f"{name}({','.join(map(str, args))})" if args else name
