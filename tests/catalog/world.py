"""A world that answers everything, with numbers of which there is only one each, and who is in it.

The shapes are those of nvml.h; the numbers say which function, field, link and member they are of.
"""

from dataclasses import replace
from typing import Any

from otel_gpu.catalog import CATALOG
from otel_gpu.ledger import Batch, Page, fold
from otel_gpu.model import Answer, Attributes, Code, Device, Missing, Query
from tests.machine import gpu, instance

FIELD, GPM = "nvmlDeviceGetFieldValues", "nvmlGpmMetricsGet"
ALL_LINKS = 0xFFFFFFFF
NOW_NS = 1_796_000_000_000_000_000

HOPPER = replace(
    gpu(), fans=2, decoders=7, encoders=1, jpegs=3, ofas=1, nvlinks=18, nvlink_version=6, c2c=True
)
BLACKWELL = replace(
    gpu(1), architecture="Blackwell", compute_capability="10.0", nvlinks=18, nvlink_version=7
)
VOLTA = replace(gpu(2), architecture="Volta", compute_capability="7.0", fans=8)
A100 = replace(gpu(3), architecture="Ampere", compute_capability="8.0")
SLICE = instance(HOPPER)

World = dict[Query, Any]


def field(number: int, scope: int = 0) -> Query:
    return Query(FIELD, (number, scope))


def profiled(number: int) -> Query:
    return Query(GPM, (number,))


def process(pid: int, size: int | None, name: str = "") -> dict[str, Any]:
    return {
        "pid": pid,
        "usedGpuMemory": size,
        "gpuInstanceId": 2**32 - 1,
        "computeInstanceId": 2**32 - 1,
        "name": name,
    }


def sample(pid: int, at_us: int, *parts: int) -> dict[str, Any]:
    """Make an `nvmlProcessUtilizationInfo_v1_t`, with a name as the backend puts it there."""
    members = ("smUtil", "memUtil", "encUtil", "decUtil", "jpgUtil", "ofaUtil")
    known = dict(zip(members, parts, strict=False))  # an older driver tells of fewer engines
    return {"timeStamp": at_us, "pid": pid, "name": f"job{pid}", **known}


WORLD: World = {
    Query("nvmlDeviceGetUtilizationRates"): {"gpu": 57, "memory": 29},
    Query("nvmlDeviceGetEncoderUtilization"): [11, 100_000],
    Query("nvmlDeviceGetDecoderUtilization"): [13, 100_001],
    Query("nvmlDeviceGetJpgUtilization"): [17, 100_002],
    Query("nvmlDeviceGetOfaUtilization"): [19, 100_003],
    # Means over 2 s, in percent and in MiB/s, each with its own id after the point.
    **{profiled(number): [number / 4 + 0.5, 98.0, 100.0] for number in range(1, 14)},
    **{
        profiled(number): [number / 4 + 0.25, 98.0, 100.0]
        for number in (*range(30, 37), *range(40, 43), 50)
    },
    **{profiled(number): [number / 4 + 0.125, 98.0, 100.0] for number in (166,)},
    profiled(20): [37.0, 98.0, 100.0],
    profiled(21): [41.0, 98.0, 100.0],
    profiled(60): [43.0, 98.0, 100.0],
    profiled(61): [47.0, 98.0, 100.0],
    profiled(100): [53.0, 98.0, 100.0],
    profiled(101): [59.0, 98.0, 100.0],
    Query("nvmlDeviceGetMemoryInfo_v2"): {
        "version": 33554472,
        "total": 1000,
        "used": 431,
        "free": 337,
        "reserved": 232,
    },
    Query("nvmlDeviceGetBAR1MemoryInfo"): {"bar1Total": 809, "bar1Used": 211, "bar1Free": 598},
    Query("nvmlDeviceGetPowerUsage"): 612_347,
    Query("nvmlDeviceGetSamples", (0, 0)): [
        [20_000 * place, 600_000 + place] for place in range(1, 751)
    ],
    field(185): 601_349,
    field(186): 699_353,
    field(185, 2): 88_359,
    Query("nvmlDeviceGetTotalEnergyConsumption"): 9_876_543_211,
    field(187): 200_003,
    field(188): 700_001,
    field(189): 650_011,
    field(190): 550_007,
    field(192): 500_009,
    Query("nvmlDeviceGetEnforcedPowerLimit"): 550_021,
    Query("nvmlDeviceGetPowerManagementLimit"): 500_023,
    Query("nvmlDeviceGetPowerManagementDefaultLimit"): 650_027,
    Query("nvmlDeviceGetTemperatureV", (0,)): 61,
    Query("nvmlDeviceGetTemperature", (0,)): 62,
    field(82): 71,
    Query("nvmlDeviceGetTemperatureThreshold", (0,)): 99,
    Query("nvmlDeviceGetTemperatureThreshold", (1,)): 95,
    Query("nvmlDeviceGetTemperatureThreshold", (2,)): 105,
    Query("nvmlDeviceGetTemperatureThreshold", (3,)): 87,
    Query("nvmlDeviceGetMarginTemperature"): 26,
    field(193): -8,
    field(194): -2,
    field(195): 3,
    field(196): 1,
    **{Query("nvmlDeviceGetFanSpeed_v2", (fan,)): 31 + 99 * fan for fan in range(2)},
    Query("nvmlDeviceGetFanSpeedRPM"): 2999,
    Query("nvmlDeviceGetClockInfo", (0,)): 1755,
    Query("nvmlDeviceGetClockInfo", (1,)): 1770,
    Query("nvmlDeviceGetClockInfo", (2,)): 3201,
    Query("nvmlDeviceGetClockInfo", (3,)): 1545,
    Query("nvmlDeviceGetMaxClockInfo", (0,)): 1980,
    Query("nvmlDeviceGetMaxClockInfo", (1,)): 1985,
    Query("nvmlDeviceGetMaxClockInfo", (2,)): 3203,
    Query("nvmlDeviceGetMaxClockInfo", (3,)): 1605,
    Query("nvmlDeviceGetPerformanceState"): 2,
    Query("nvmlDeviceGetCurrentClocksEventReasons"): 0x4 | 0x40,
    Query("nvmlDeviceGetSupportedClocksEventReasons"): 0x1FF,
    field(74): 7_930_000_001,
    field(76): 76_000_003,
    field(77): 77_000_007,
    field(269): 269_000_009,
    field(270): 270_000_011,
    field(271): 271_000_013,
    Query("nvmlDeviceGetPcieThroughput", (0,)): 7001,
    Query("nvmlDeviceGetPcieThroughput", (1,)): 9001,
    Query("nvmlDeviceGetCurrPcieLinkGeneration"): 4,
    Query("nvmlDeviceGetCurrPcieLinkWidth"): 8,
    Query("nvmlDeviceGetMaxPcieLinkGeneration"): 5,
    Query("nvmlDeviceGetMaxPcieLinkWidth"): 16,
    Query("nvmlDeviceGetPcieReplayCounter"): 1201,
    **{field(number): 1000 + number for number in (95, 169, *range(173, 184))},
    field(138, ALL_LINKS): 29_244_144,
    field(139, ALL_LINKS): 31_000_007,
    **{field(number, link): 10 * number + link for number in (161, 162, 163) for link in range(18)},
    **{field(164, link): 26_562 for link in range(18)},
    **{field(165, link): (1, 1, 0, 2, 3, 1)[link % 6] for link in range(18)},
    **{field(number, ALL_LINKS): 2000 + number for number in (*range(206, 215), 219, 221)},
    field(220, ALL_LINKS): 0x3 << 8 | 15,
    field(222, ALL_LINKS): 0x7 << 8 | 12,
    Query("nvmlDeviceGetP2PStatus", (0,)): {"GPU-1": 0, "GPU-2": 4},
    Query("nvmlDeviceGetP2PStatus", (1,)): {"GPU-1": 0, "GPU-2": 4},
    Query("nvmlDeviceGetP2PStatus", (2,)): {"GPU-1": 5, "GPU-2": 0},
    Query("nvmlDeviceGetP2PStatus", (3,)): {"GPU-1": 0, "GPU-2": 2},
    Query("nvmlDeviceGetGpuFabricInfoV"): {
        "state": 3,
        "status": 0,
        # Bandwidth is whole (2), routes recover (1), their health is not checked (0),
        # access is free (2) and the configuration is right (1).
        "healthMask": 2 | 1 << 2 | 0 << 4 | 2 << 6 | 1 << 8,
    },
    field(3): 3001,
    field(4): 3002,
    Query("nvmlDeviceGetTotalEccErrors", (0, 0)): 3003,
    Query("nvmlDeviceGetTotalEccErrors", (1, 0)): 3005,
    **{
        Query("nvmlDeviceGetMemoryErrorCounter", (kind, counter, place)): 4000
        + 100 * kind
        + 10 * counter
        + place
        for kind in (0, 1)
        for counter in (0, 1)
        for place in range(8)
    },
    Query("nvmlDeviceGetSramEccErrorStatus"): {
        "aggregateUncParity": 91,
        "aggregateUncSecDed": 92,
        "aggregateCor": 93,
        "volatileUncParity": 94,
        "volatileUncSecDed": 95,
        "volatileCor": 96,
        "aggregateUncBucketL2": 21,
        "aggregateUncBucketSm": 22,
        "aggregateUncBucketPcie": 23,
        "aggregateUncBucketMcu": 24,
        "aggregateUncBucketOther": 25,
        "bThresholdExceeded": 1,
    },
    field(142): 5142,
    field(143): 5143,
    field(144): 1,
    field(145): 0,
    Query("nvmlDeviceGetRemappedRows"): [5001, 5002, 0, 1],
    Query("nvmlDeviceGetRowRemapperHistogram"): {
        "max": 3060,
        "high": 5,
        "partial": 4,
        "low": 2,
        "none": 1,
    },
    Query("nvmlDeviceGetRetiredPages", (0,)): [7, 8, 9],
    Query("nvmlDeviceGetRetiredPages", (1,)): [1, 2, 3, 4, 5],
    Query("nvmlDeviceGetRetiredPagesPendingStatus"): 1,
    Query("nvmlDeviceGetRepairStatus"): [0, 1],
    Query("nvmlDeviceGetUnrepairableMemoryFlag_v1"): 1,
    field(230): 3,
    Query("nvmlDeviceGetPersistenceMode"): 1,
    Query("nvmlDeviceGetEccMode"): [1, 0],
    Query("nvmlDeviceGetMigMode"): [0, 0],
    Query("nvmlDeviceGetComputeMode"): 3,
    Query("nvmlDeviceGetGridLicensableFeatures"): {
        "isGridLicenseSupported": 1,
        "licensableFeaturesCount": 1,
        "gridLicensableFeatures": [
            {"featureCode": 1, "featureState": 1},
            {"featureCode": 0, "featureState": 0},
        ],
    },
    Query("nvmlDeviceGetComputeRunningProcesses"): [
        process(701, 7_010, "python3.11"),
        process(702, 7_020, "trainer"),
    ],
    Query("nvmlDeviceGetGraphicsRunningProcesses"): [process(703, 7_030, "Xorg")],
    Query("nvmlDeviceGetMPSComputeRunningProcesses"): [process(704, 7_040)],
    Query("nvmlDeviceGetProcessesUtilizationInfo", (0,)): [
        sample(701, 1000, 85, 18, 1, 2, 3, 4),
        sample(702, 1001, 15, 12, 5, 6, 7, 8),
    ],
    Query("nvmlDeviceGetProcessUtilization", (0,)): [sample(701, 1000, 84, 17, 9, 8)],
    Query("nvmlDeviceGetEncoderStats"): [3, 59, 4_321],
    Query("nvmlDeviceGetFBCStats"): {
        "sessionsCount": 2,
        "averageFPS": 30,
        "averageLatency": 20,
    },
}

RECORDS = {metric.name: metric for metric in CATALOG}


def read(name: str, world: World, device: Device = HOPPER) -> Page:
    """Read one metric in a world; what is not in it is not supported."""
    metric = RECORDS[name]
    heard = {query: Answer(Code.NOT_SUPPORTED) for query in metric.read.queries}
    heard |= {query: Answer(Code.SUCCESS, value) for query, value in world.items()}
    return fold(Page(), Batch(device, NOW_NS, 100.0, heard), [metric], 15.0)


def told(name: str, world: World, device: Device = HOPPER) -> dict[Attributes, float]:
    """Give the points of one metric."""
    reading = read(name, world, device).readings.get(name)
    return {point.attributes: point.value for point in reading.points} if reading else {}


def lacking(name: str, world: World, device: Device = HOPPER) -> list[Missing]:
    """Give the gaps of one metric."""
    return [gap.missing for gap in read(name, world, device).gaps.get(name, ())]
