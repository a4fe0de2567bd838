"""The power sensor of a simulated board: a sample each 20 ms, and the energy that they add up to.

A sample is the trend of its 20 ms and noise. The noise of each second adds up to nothing, so that
the energy at a moment is the trend's integral and the noise of the second that has begun: exact,
and the same however often it is asked.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import NamedTuple

from otel_gpu.backends.simulation.chance import Chance
from otel_gpu.backends.simulation.curve import Curve

TICK_S = 0.02  # an H200's ring: 119 samples over 2.36 s
SECOND = 50  # ticks
STILL, LIVELY = 0.01, 0.07  # noise of an idle board and on top of it, as a share of the power
KEPT = 8  # seconds of samples that are remembered, so that a sweep works out each once


class Second(NamedTuple):
    """One second of samples: watts, and the joules of the noise before each."""

    watts: tuple[float, ...]
    noise: tuple[float, ...]


class Meter:
    """Power and energy of one board, by tick: tick n ends the sample of [n - 1, n) x 20 ms."""

    def __init__(self, trend: Curve, floor: float, chance: Chance) -> None:
        self._trend, self._floor, self._chance = trend, floor, chance
        self._seconds: dict[int, Second] = {}

    def watts(self, tick: int) -> float:
        """Give the newest sample at a tick."""
        second, place = divmod(tick - 1, SECOND)
        return self._second(second).watts[place]

    def joules(self, tick: int) -> float:
        """Give the energy since second 0: all samples, 20 ms each."""
        second, place = divmod(tick, SECOND)
        return self._trend.integral(tick * TICK_S) + self._second(second).noise[place]

    def average(self, tick: int) -> float:
        """Give the mean of the samples of the last second, in watts."""
        return (self.joules(tick) - self.joules(tick - SECOND)) / (SECOND * TICK_S)

    def _second(self, number: int) -> Second:
        known = self._seconds.get(number)
        if known is None:
            if len(self._seconds) >= KEPT:
                del self._seconds[min(self._seconds)]
            known = self._seconds[number] = self._measured(number)
        return known

    def _measured(self, number: int) -> Second:
        first = number * SECOND
        sums = [self._trend.integral((first + tick) * TICK_S) for tick in range(SECOND + 1)]
        trend = [(after - before) / TICK_S for before, after in pairwise(sums)]
        noise = self._noise(number, min(trend))
        joules = accumulate((watts * TICK_S for watts in noise), initial=0.0)
        watts = (power + shake for power, shake in zip(trend, noise, strict=True))
        return Second(tuple(watts), tuple(joules)[:SECOND])

    def _noise(self, number: int, least: float) -> list[float]:
        """Shake each sample by so little that the least stays over 0, and by nothing in sum."""
        octets = self._chance.octets(SECOND, number)
        middle = sum(octets) / SECOND
        size = STILL * min(least, self._floor) + LIVELY * max(0.0, least - self._floor)
        return [size * (octet - middle) / 128 for octet in octets]
