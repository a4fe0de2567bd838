"""The state of one simulated GPU over time: power, heat, clocks and memory follow its jobs.

Pure: everything is worked out from the tick that is asked for, so two sweeps that ask in different
rhythms see the same GPU. A tick is 20 ms, as often as the driver samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from otel_gpu.backends.simulation.boxes import Share
from otel_gpu.backends.simulation.chance import Chance
from otel_gpu.backends.simulation.curve import (
    Curve,
    Lag,
    Piece,
    clipped,
    excess,
    roughened,
    surplus,
)
from otel_gpu.backends.simulation.figures import PAGE, SM, Board, Heat
from otel_gpu.backends.simulation.jobs import Phase
from otel_gpu.backends.simulation.meter import TICK_S, Meter

DAY_S = 86_400.0
STEP_MHZ = 15  # NVIDIA's clocks move in steps of this size
UTILIZATION_TICKS = 8  # nvml.h: over the last 1/6 to 1 s
IDLE, SW_POWER_CAP = 0x1, 0x4  # nvml.h, nvmlClocksEventReason*
DIFFERENT = 8  # neighbours whose temperatures differ even when all are idle
ROUGH_S, LEAST = 4.0, 0.96  # how often the activity turns, and to which part of the load at least
TRAINING = 0.2  # more activity than this is training: less is loading, or a checkpoint


class Gpu:
    """One GPU and its MIG instances; `place`, its index, makes it a little unlike the others.

    `activity` is how much of the GPU works (0 to 1), and `training` is the same of a job that
    trains, without its loading and its checkpoints. `alone`: no other GPU to speak with.
    """

    def __init__(
        self,
        board: Board,
        phases: Sequence[Phase],
        place: int,
        chance: Chance,
        shares: Sequence[Share] = (),
        *,
        alone: bool = False,
    ) -> None:
        self.board, self.place, self.chance, self.alone = board, place, chance, alone
        self.instances = tuple(
            Instance(self, share, chance.part("instance", number))
            for number, share in enumerate(shares)
        )
        self.idle_w = board.idle_w * chance.between(0.95, 1.05, "idle")
        self.loaded_s = chance.between(3 * DAY_S, 9 * DAY_S, "loaded")
        self._load = Curve(Piece(phase.seconds, *phase.load) for phase in phases)
        self._jobs = [phase.job for phase in phases if phase.seconds > 0]
        rough = chance.part("activity")
        self.activity = roughened(self._load, ROUGH_S, lambda turn: rough.between(LEAST, 1, turn))
        self.training = surplus(self.activity, TRAINING)
        self._memory = Curve(Piece(phase.seconds, *phase.memory) for phase in phases)
        self._wanted = Curve(
            Piece(phase.seconds, *(self._thirst(phase, load) for load in phase.load))
            for phase in phases
        )
        # The driver holds the mean a little under the cap; an H200's was 690 W at 700 W.
        self._held_w = board.cap_w * chance.between(0.982, 0.998, "held")
        self._trend = clipped(self._wanted, self._held_w)
        self._capped = excess(self._wanted, self._held_w)
        self._meter = Meter(self._trend, self.idle_w, chance.part("meter"))
        self._heat = Lag(self._trend, board.heat.seconds)
        self._memory_heat = Lag(self._trend, (board.memory_heat or board.heat).seconds)
        self.bandwidth_wanted = chance.between(0.15, 0.5, "bandwidth")
        self._transmitted = chance.between(2e7, 4e8, "transmitted")
        self._received = chance.between(5e8, 3e9, "received")

    def busy(self, tick: int) -> bool:
        """Whether anything runs."""
        return self._load.at(tick * TICK_S) > 0

    def job(self, tick: int) -> str:
        """Name the job that runs, as no other is named; empty when nothing runs."""
        cycle, place, _ = self._load.find(tick * TICK_S)
        return f"{cycle:.0f}/{self._jobs[place]}" if self.busy(tick) else ""

    def utilization(self, tick: int) -> float:
        """Give the share of time in which something ran, with its small unrest; 0 when idle."""
        load = self._load.at(tick * TICK_S)
        if load == 0:
            return 0.0
        unrest = self.chance.between(-0.02, 0.02, "unrest", tick // UTILIZATION_TICKS)
        return min(1.0, max(0.01, load + unrest))

    def bandwidth(self, tick: int) -> float:
        """Give the share of time in which memory was read or written."""
        return self.utilization(tick) * self.bandwidth_wanted

    def media(self, tick: int) -> tuple[float, ...]:
        """Give how busy encoder, decoder, JPEG and OFA are."""
        return tuple(self.utilization(tick) * share for share in self.board.media)

    def pcie(self, tick: int) -> tuple[float, float]:
        """Give the bytes a second out of the GPU and into it: polling, and a job's data."""
        return self.pcie_at(self.utilization(tick))

    def pcie_at(self, load: float) -> tuple[float, float]:
        """Give the same at a load."""
        return 7e5 + load * self._transmitted, 5e5 + load * self._received

    def watts(self, tick: int) -> float:
        """Give the power at this moment: the newest sample."""
        return self._meter.watts(tick)

    def average_watts(self, tick: int) -> float:
        """Give the mean power of the last second."""
        return self._meter.average(tick)

    def memory_watts(self, tick: int) -> float:
        """Give what memory took of the last second's power."""
        least, most = self.board.memory_w
        part = (self.average_watts(tick) - self.idle_w) / (self.board.cap_w - self.idle_w)
        return least + (most - least) * part

    def joules(self, tick: int) -> float:
        """Give the energy since the driver was loaded, days before second 0."""
        return self.loaded_s * self._trend.mean + self._meter.joules(tick)

    def capped(self, tick: int) -> bool:
        """Whether the job wants more power than the cap allows."""
        return self._capped.at(tick * TICK_S) > 0

    def capped_seconds(self, tick: int) -> float:
        """Give the time for which the power cap held the clocks, since the driver was loaded."""
        return self.loaded_s * self._capped.mean + self._capped.integral(tick * TICK_S)

    def celsius(self, tick: int) -> int:
        """Give the temperature of the GPU."""
        return self._warmth(self.board.heat, self._heat, tick)

    def memory_celsius(self, tick: int) -> int:
        """Give the temperature of the memory, on boards with a sensor there."""
        return self._warmth(self.board.memory_heat or self.board.heat, self._memory_heat, tick)

    def margin(self, tick: int) -> int:
        """Give what the GPU may still warm up."""
        return self.board.hottest - self.celsius(tick)

    def megahertz(self, domain: int, tick: int) -> int:
        """Give the clock of a domain. Held back by the cap, SM and graphics give way."""
        clock = self.board.clocks[domain]
        if not self.busy(tick):
            return clock.idle
        if domain > SM or not self.capped(tick):
            return clock.busy
        held = clock.busy * sqrt(self._held_w / self._wanted.at(tick * TICK_S))
        shake = STEP_MHZ * self.chance.between(0, 3, "clock", tick // UTILIZATION_TICKS)
        return max(clock.idle, int((held - shake) // STEP_MHZ) * STEP_MHZ)

    def performance_state(self, tick: int) -> int:
        """Give the P-state: 0 while anything runs."""
        return 0 if self.busy(tick) else self.board.idle_state

    def reasons(self, tick: int) -> int:
        """Give the mask of what holds the clocks below their limit."""
        return (0 if self.busy(tick) else IDLE) | (SW_POWER_CAP if self.capped(tick) else 0)

    def memory(self, tick: int) -> int:
        """Give the bytes that are allocated: the jobs' and the little that is never given back."""
        board = self.board
        kept = (16 * (self.place + 1) + self.chance.octets(1, "kept")[0] % 16) * PAGE
        if self.instances:
            return kept + sum(instance.memory(tick) for instance in self.instances)
        free = (board.memory_total or board.unified_memory) - board.memory_reserved - kept
        return kept + pages(free * self.memory_share(tick))

    def memory_share(self, tick: int) -> float:
        """Give the share of what can be allocated that the job has."""
        return self._memory.at(tick * TICK_S)

    def fan(self, number: int, tick: int) -> float:
        """Give how fast a fan is driven: at rest when cool, then with the temperature."""
        celsius = self.celsius(tick)
        if celsius < 40:
            return 0.0
        wanted = 0.3 + 0.7 * (celsius - 40) / (self.board.hottest - 40) + 0.01 * number
        return min(1.0, wanted)

    def _thirst(self, phase: Phase, load: float) -> float:
        return self.idle_w + load * (phase.thirst * self.board.cap_w - self.idle_w)

    def _warmth(self, heat: Heat, lag: Lag, tick: int) -> int:
        seat = self.place % DIFFERENT  # how far it sits from the fresh air
        return round(heat.ambient + seat + heat.per_watt * lag.at(tick * TICK_S))


class Instance:
    """A MIG instance: a share of its GPU's memory, which its GPU's jobs fill to a share."""

    def __init__(self, gpu: Gpu, share: Share, chance: Chance) -> None:
        self.gpu, self.share, self.chance = gpu, share, chance
        self.total = share.memory_total
        self.reserved = pages(share.memory_total / 512)
        self._eager = chance.between(0.5, 1.0, "eager")
        self._kept = (1 + chance.octets(1, "kept")[0]) * PAGE

    def memory(self, tick: int) -> int:
        """Give the bytes that are allocated in the instance."""
        free = self.total - self.reserved - self._kept
        return self._kept + pages(free * self._eager * self.gpu.memory_share(tick))


def pages(size: float) -> int:
    """Round down to whole pages."""
    return int(size) // PAGE * PAGE
