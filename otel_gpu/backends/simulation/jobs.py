"""What a simulated GPU is given to do: a seeded timetable of training jobs and idle gaps."""

from __future__ import annotations

from math import fsum
from typing import NamedTuple

from otel_gpu.backends.simulation.chance import Chance

JOBS = 12
IDLE_CYCLE_S = 600.0


class Phase(NamedTuple):
    """A part of the timetable: how busy the GPU is and how much memory is allocated.

    `load` (0 to 1) and `memory` (a share of what can be allocated) go straight from their first
    to their second value. `thirst` is the power wanted at full load, as a share of the power cap:
    over 1, the job is held back by the cap. `job` tells the jobs of a cycle apart.
    """

    seconds: float
    load: tuple[float, float]
    memory: tuple[float, float]
    thirst: float
    job: int = 0


def timetable(chance: Chance, load: float) -> tuple[Phase, ...]:
    """Make the phases of one cycle; jobs run for the share `load` (0 to 1) of it."""
    if load == 0:
        return (idle(IDLE_CYCLE_S),)
    jobs = [
        [phase._replace(job=number) for phase in job(chance.part("job", number))]
        for number in range(JOBS)
    ]
    # fsum: what sum() makes of floats depends on the version of Python (3.12 compensates)
    busy = fsum(phase.seconds for phases in jobs for phase in phases)
    weights = [chance.between(0.4, 1.6, "gap", number) for number in range(JOBS)]
    second = busy * (1 - load) / load / fsum(weights)
    phases: list[Phase] = []
    for phases_of_job, weight in zip(jobs, weights, strict=True):
        phases += [idle(weight * second), *phases_of_job]
    return tuple(phase for phase in phases if phase.seconds > 0)


def idle(seconds: float) -> Phase:
    """Nothing runs."""
    return Phase(seconds, (0.0, 0.0), (0.0, 0.0), 0.0)


def job(chance: Chance) -> list[Phase]:
    """Load data and the model, warm up, train with a pause at each checkpoint, and end."""
    memory = chance.between(0.35, 0.92, "memory")
    thirst = chance.between(0.7, 1.5, "thirst")
    epochs = 3 + int(chance.between(0, 4, "epochs"))
    loads = [chance.between(0.86, 0.99, "load", epoch) for epoch in range(epochs + 1)]
    phases = [
        Phase(chance.between(4, 12, "start"), (0.04, 0.15), (0.02, memory), thirst),
        Phase(chance.between(2, 6, "warm"), (0.15, loads[0]), (memory, memory), thirst),
    ]
    for epoch in range(epochs):
        train = chance.between(20, 60, "train", epoch)
        pause = chance.between(2, 4, "checkpoint", epoch)
        phases += [
            Phase(train, (loads[epoch], loads[epoch + 1]), (memory, memory), thirst),
            Phase(pause, (0.12, 0.2), (memory, memory), thirst),
        ]
    return [*phases, Phase(1.0, (0.2, 0.01), (memory, 0.02), thirst)]
