"""The machines that can be simulated, as data: what is plugged in, MIG layouts and identities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from otel_gpu.backends.simulation.boards import A100, B200, GB10, H200, L4, RTX4090, T4
from otel_gpu.backends.simulation.chance import Chance
from otel_gpu.backends.simulation.figures import MIB, Board
from otel_gpu.model import Device


@dataclass(frozen=True, slots=True)
class Share:
    """A MIG instance of a layout: its profile, the ids of its GPU and compute instance."""

    profile: str
    gpu_instance: int
    memory_total: int
    compute_instance: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A machine: one kind of board, so many by default, a driver, and where they are plugged in.

    `buses` are PCI addresses without the domain. A box that was given only some of its host's
    GPUs has device files from `first_minor` on. `layouts` are the MIG instances of each GPU in
    turn.
    """

    name: str
    board: Board
    gpus: int
    buses: tuple[str, ...]
    driver_version: str = "580.159.04"
    nvml_version: str = "13.580.159.04"
    cuda_version: str = "13.0"
    domain: int = 0
    first_minor: int = 0
    layouts: tuple[tuple[Share, ...], ...] = ()

    def device(self, index: int) -> Device:
        """Describe the GPU at an index."""
        board, place = self.board, Chance(self.name, index)
        domain, bus = divmod(index, len(self.buses))
        return Device(
            uuid=f"GPU-{uuid(place)}",
            index=index,
            minor=self.first_minor + index,
            model=board.model,
            serial=str(int(place.between(1.3e12, 1.7e12, "serial"))) if board.serial else "",
            pci_address=f"{self.domain + domain:04x}:{self.buses[bus]}",
            driver_version=self.driver_version,
            bios_version=board.bios_version,
            firmware_version=self.driver_version if board.firmware else "",
            part_number=board.part_number,
            architecture=board.architecture,
            compute_capability=board.compute_capability,
            fans=board.fans,
            decoders=board.engines.decoders,
            encoders=board.engines.encoders,
            jpegs=board.engines.jpegs,
            ofas=board.engines.ofas,
            nvlinks=board.nvlink.links,
            nvlink_version=board.nvlink.version,
        )

    def shares(self, index: int) -> tuple[Share, ...]:
        """Give the MIG layout of the GPU at an index; empty where MIG is off."""
        return self.layouts[index % len(self.layouts)] if self.layouts else ()


def instance(gpu: Device, share: Share) -> Device:
    """Describe a MIG instance of a GPU: what the GPU is, and which part of it this is."""
    name = Chance(gpu.uuid, share.gpu_instance, share.compute_instance)
    return replace(
        gpu,
        uuid=f"MIG-{uuid(name)}",
        parent=gpu.uuid,
        mig_profile=share.profile,
        mig_slots=MIG_SLOTS,
        gpu_instance=share.gpu_instance,
        compute_instance=share.compute_instance,
        fans=0,  # what follows is the whole board's
        decoders=0,
        encoders=0,
        jpegs=0,
        ofas=0,
        nvlinks=0,
    )


def uuid(name: Chance) -> UUID:
    """Make an identifier that looks like a driver's, and is the same each time."""
    return UUID(bytes=name.octets(16, "uuid"), version=4)


MIG_SLOTS = 7
SEVENTH = Share("1g.10gb", 0, 9_728 * MIB)
MIXED = (
    Share("3g.40gb", 2, 40_192 * MIB),
    Share("2g.20gb", 3, 19_968 * MIB),
    replace(SEVENTH, gpu_instance=9),
    replace(SEVENTH, gpu_instance=10),
)
SEVEN = tuple(replace(SEVENTH, gpu_instance=number) for number in (7, 8, 9, 11, 12, 13, 14))

BOXES: Mapping[str, Box] = {
    box.name: box
    for box in (
        Box(
            name="h200x8",
            board=H200,
            gpus=8,
            buses=tuple(f"{bus}:00.0" for bus in ("1b", "43", "52", "61", "9d", "c3", "d1", "df")),
        ),
        Box(
            name="b200x8",
            board=B200,
            gpus=8,
            buses=tuple(f"{bus}:00.0" for bus in ("0f", "2d", "44", "5b", "89", "a8", "c0", "d8")),
        ),
        Box(
            name="a100-mig",
            board=A100,
            gpus=2,
            buses=tuple(f"{bus}:00.0" for bus in ("07", "0f", "47", "4e", "87", "90", "b7", "bd")),
            first_minor=2,
            layouts=(MIXED, SEVEN),
        ),
        Box(
            name="l4",
            board=L4,
            gpus=4,
            buses=("00:03.0", "00:04.0", "00:05.0", "00:06.0"),
            driver_version="570.172.08",
            nvml_version="12.570.172.08",
            cuda_version="12.8",
        ),
        Box(name="rtx4090", board=RTX4090, gpus=1, buses=("01:00.0", "41:00.0")),
        Box(
            name="t4",
            board=T4,
            gpus=4,
            buses=("00:1b.0", "00:1c.0", "00:1d.0", "00:1e.0"),
            driver_version="525.147.05",
            nvml_version="12.525.147.05",
            cuda_version="12.0",
        ),
        Box(
            name="gb10",
            board=GB10,
            gpus=1,
            buses=("01:00.0",),
            driver_version="580.95.05",
            nvml_version="13.580.95.05",
            domain=0xF,
        ),
    )
}
