"""The link between host and GPU. `receive` is into the GPU, `transmit` out of it."""

from __future__ import annotations

from otel_gpu.catalog.forms import Split
from otel_gpu.catalog.profiling import MEBI, PCIE_RECEIVE, PCIE_TRANSMIT, gpm, integral
from otel_gpu.catalog.reading import call, either, field, split
from otel_gpu.model import Kind, Metric, Profile, Tier

TRANSMIT, RECEIVE = 0, 1  # nvml.h, nvmlPcieUtilCounter_t
KILO = 1000
BITS_32 = 2**32

IO = Metric(
    name="hw.gpu.io",
    kind=Kind.COUNTER,
    unit="By",
    brief="Bytes over PCIe, protocol included.",
    read=Split(
        (
            integral(PCIE_TRANSMIT, scale=MEBI, attributes=(("network.io.direction", "transmit"),)),
            integral(PCIE_RECEIVE, scale=MEBI, attributes=(("network.io.direction", "receive"),)),
        )
    ),
    tier=Tier.FAST,
    attributes=("network.io.direction",),
    integer=True,
    typical=(1e5, 2e10),
    note="Begins at 0. The protocol adds 7 to 9 % to the payload; reading also sends requests.",
)

THROUGHPUT = Metric(
    name="nvidia.gpu.pcie.throughput",
    kind=Kind.GAUGE,
    unit="By/s",
    brief="Bytes a second over PCIe, protocol included.",
    read=split(
        "network.io.direction",
        {
            "transmit": either(
                gpm(PCIE_TRANSMIT, scale=MEBI, profile=Profile.FULL),
                call("nvmlDeviceGetPcieThroughput", TRANSMIT, scale=KILO, profile=Profile.OFF),
            ),
            "receive": either(
                gpm(PCIE_RECEIVE, scale=MEBI, profile=Profile.FULL),
                call("nvmlDeviceGetPcieThroughput", RECEIVE, scale=KILO, profile=Profile.OFF),
            ),
        },
    ),
    tier=Tier.DEFAULT,
    profile=Profile.FULL,
    attributes=("network.io.direction",),
    typical=(1e5, 2e10),
    dcgm=("DCGM_FI_PROF_PCIE_TX_BYTES", "DCGM_FI_PROF_PCIE_RX_BYTES"),
    note="Without GPM only when enabled by name: the driver then measures for 20 ms a direction, "
    "and waits.",
)

LINK_GENERATION = Metric(
    name="nvidia.gpu.pcie.link.generation",
    kind=Kind.GAUGE,
    unit="{generation}",
    brief="PCIe generation at which the link runs; it falls while the GPU is idle.",
    read=call("nvmlDeviceGetCurrPcieLinkGeneration"),
    tier=Tier.SLOW,
    integer=True,
    typical=(5, 5),
    dcgm=("DCGM_FI_DEV_PCIE_LINK_GEN",),
)

LINK_WIDTH = Metric(
    name="nvidia.gpu.pcie.link.width",
    kind=Kind.GAUGE,
    unit="{lane}",
    brief="PCIe lanes over which the link runs.",
    read=call("nvmlDeviceGetCurrPcieLinkWidth"),
    tier=Tier.SLOW,
    integer=True,
    typical=(16, 16),
    dcgm=("DCGM_FI_DEV_PCIE_LINK_WIDTH",),
)

LINK_MAX_GENERATION = Metric(
    name="nvidia.gpu.pcie.link.max_generation",
    kind=Kind.GAUGE,
    unit="{generation}",
    brief="Highest PCIe generation that GPU and slot can run together.",
    read=call("nvmlDeviceGetMaxPcieLinkGeneration"),
    tier=Tier.SLOW,
    profile=Profile.FULL,
    integer=True,
    typical=(5, 5),
    dcgm=("DCGM_FI_DEV_PCIE_MAX_LINK_GEN",),
)

LINK_MAX_WIDTH = Metric(
    name="nvidia.gpu.pcie.link.max_width",
    kind=Kind.GAUGE,
    unit="{lane}",
    brief="Most PCIe lanes that GPU and slot can use together.",
    read=call("nvmlDeviceGetMaxPcieLinkWidth"),
    tier=Tier.SLOW,
    profile=Profile.FULL,
    integer=True,
    typical=(16, 16),
    dcgm=("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH",),
)

REPLAYS = Metric(
    name="nvidia.gpu.pcie.replays",
    kind=Kind.COUNTER,
    unit="{replay}",
    brief="Packets that had to be sent again since the driver was loaded.",
    read=call("nvmlDeviceGetPcieReplayCounter"),
    tier=Tier.DEFAULT,
    integer=True,
    typical=(0, 0),
    wraps=BITS_32,
    dcgm=("DCGM_FI_DEV_PCIE_REPLAY_COUNTER",),
)

ERRORS = Metric(
    name="nvidia.gpu.pcie.errors",
    kind=Kind.COUNTER,
    unit="{error}",
    brief="Errors of the link by type, since the driver was loaded.",
    read=split(
        "error.type",
        {
            "correctable": field(173),
            "non_fatal": field(179),
            "fatal": field(180),
            "naks_received": field(174, profile=Profile.FULL),
            "receiver": field(175, profile=Profile.FULL),
            "bad_tlp": field(176, profile=Profile.FULL),
            "naks_sent": field(177, profile=Profile.FULL),
            "bad_dllp": field(178, profile=Profile.FULL),
            "unsupported_request": field(181, profile=Profile.FULL),
            "lcrc": field(182, profile=Profile.FULL),
            "lane": field(183, profile=Profile.FULL),
            "l0_to_recovery": field(169, profile=Profile.FULL),
            "replay_rollover": field(95, profile=Profile.FULL),
        },
    ),
    tier=Tier.SLOW,
    attributes=("error.type",),
    integer=True,
    typical=(0, 0),
    wraps=BITS_32,
    dcgm=("DCGM_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS",),
)

METRICS = (
    IO,
    THROUGHPUT,
    LINK_GENERATION,
    LINK_WIDTH,
    LINK_MAX_GENERATION,
    LINK_MAX_WIDTH,
    REPLAYS,
    ERRORS,
)
