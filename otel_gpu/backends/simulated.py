"""A believable box of GPUs in place of a driver: what demo, dashboards and tests run against."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import floor
from typing import Any

from otel_gpu.backends import gpm
from otel_gpu.backends.gpm import Gpm
from otel_gpu.backends.remedies import REMEDIES
from otel_gpu.backends.simulation import links, typical
from otel_gpu.backends.simulation.boxes import instance
from otel_gpu.backends.simulation.chance import Chance
from otel_gpu.backends.simulation.faulty import HANDLE, INIT, Fault, Faults, forever
from otel_gpu.backends.simulation.jobs import timetable
from otel_gpu.backends.simulation.meter import TICK_S
from otel_gpu.backends.simulation.physics import Gpu, Instance
from otel_gpu.backends.simulation.profiler import Profiler
from otel_gpu.backends.simulation.replies import CALLS, TICK_US, reply
from otel_gpu.backends.simulation.shapes import Moment
from otel_gpu.backends.simulation.spec import Spec, parse
from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.reading import FIELD
from otel_gpu.model import Answer, BackendError, Code, Device, Event, Metric, Query, Refused, System

DRIFT_US = 10_000  # between the two clocks that is not a step of the wall clock
BATCHED = frozenset({FIELD, gpm.CALL})  # whose questions travel in one call
PEERS = "nvmlDeviceGetP2PStatus"


@dataclass(frozen=True, slots=True)
class Part:
    """A GPU or a MIG instance that is open: who it is, its state, and its GPU's index."""

    device: Device
    state: Gpu | Instance
    gpu: int
    chance: Chance


class SimulatedBackend:
    """A `model.Backend` without hardware, made from the catalog and from what each box is.

    A spec is BOX and options with commas between: `h200x8,gpus=2,seed=7,load=0.6,fault=...`.

    BOX is `h200x8` (also when nothing is said), `b200x8` (NVLink 5), `a100-mig` (two GPUs with MIG
    instances), `l4` (on the R570 driver), `rtx4090`, `t4` (on the old R525 driver) or `gb10`
    (unified memory).

    - `gpus=N`: so many GPUs instead of the box's own number.
    - `seed=N`: other jobs and other noise; the GPUs keep their identities.
    - `load=0..1`: for what part of the time jobs run.
    - `start=SECONDS`: the monotonic second from which faults count their time, so that they go on
      as planned when the process is replaced; else they count from the backend's making.
    - `fault=...`: as often as wanted.
        - `lost:GPU3@20s`, `lost:GPU3@20s-60s`: code 15, for good or until it comes back;
        - `unsupported:CALL`, `refuse:CODE:CALL`: code 3, or any other;
        - `slow:CALL:50ms`: the call takes so much longer;
        - `hang:CALL`: the call never comes back;
        - `absent@0s-20s`: there is no driver (code 9), here for the first 20 s.

    CALL is an NVML function, `fieldN` for one field of `nvmlDeviceGetFieldValues`, or `any`. A
    fault can be narrowed to a GPU and to a time: `hang:nvmlDeviceGetTemperatureV@GPU1@5s`. MIG
    instances share the faults of their GPU.

    Power, energy, heat, clocks, memory, links and processes follow one another as in `physics`;
    what is not modelled is answered inside the catalog's typical range; what nobody knows is not
    supported. The same seed at the same monotonic time gives the same values, whoever asked
    whatever before: a backend in a new process goes on where the old one was. Only a GPM metric is
    about the time since it was last asked for, as the driver's is.
    """

    def __init__(
        self,
        spec: Spec,
        *,
        catalog: Iterable[Metric] = CATALOG,
        clock: Callable[[], float] = time.monotonic,
        time_ns: Callable[[], int] = time.time_ns,
        sleep: Callable[[float], None] = time.sleep,
        hang: Callable[[], None] = forever,
    ) -> None:
        self.on_call: Callable[[str, str], None] = unheard
        self._spec, self._clock, self._time_ns = spec, clock, time_ns
        self._index = typical.index(catalog)
        self._faults = Faults(spec.faults, sleep=sleep, hang=hang)
        self._start_s = clock() if spec.start_s is None else spec.start_s
        self._gpus = [self._built(index) for index in range(spec.gpus)]
        self._parts: dict[str, Part] = {}
        self._gpm = Gpm(Profiler(clock, self._typical_mean), clock)
        self._started = False
        self._seen: set[str] = set()
        self._offset_us = 0

    @classmethod
    def from_spec(
        cls, spec: str = "", *, catalog: Iterable[Metric] = CATALOG, **parts: Any
    ) -> SimulatedBackend:
        """Make the box that a spec asks for; `parts` are the clocks and delays of `__init__`.

        Raises ConfigError, which lists all that is wrong with the spec and what can be written.
        """
        metrics = tuple(catalog)
        asked = {query.call for metric in metrics for query in metric.read.queries}
        return cls(parse(spec, {INIT, HANDLE} | CALLS.keys() | asked), catalog=metrics, **parts)

    def open(self, exclude: frozenset[str] = frozenset()) -> System:
        """Enumerate the box, leaving out UUIDs and indices; as the driver's backend does.

        Raises BackendError while the driver is absent.
        """
        self.close()
        self._start()
        refused = [
            found
            for index in range(self._spec.gpus)
            if (found := self._open_gpu(index, exclude)) is not None
        ]
        self._seen |= self._parts.keys()
        box = self._spec.box
        return System(
            driver_version=box.driver_version,
            nvml_version=box.nvml_version,
            cuda_version=box.cuda_version,
            library="simulated",
            devices=tuple(part.device for part in self._parts.values()),
            refused=tuple(refused),
        )

    def ask(self, uuid: str, queries: Sequence[Query]) -> list[Answer]:
        """Answer for one GPU or instance, all at one moment.

        Fields travel in one call, and so do GPM metrics.
        """
        part = self._parts.get(uuid)
        if part is None:
            code = Code.GPU_NOT_FOUND if self._started else Code.UNINITIALIZED
            return [Answer(code)] * len(queries)
        moment = self._moment()
        struck = self._struck(uuid, part, queries)
        asked = [query for query in queries if query not in struck]
        profiled = self._profiled(uuid, part, asked)
        return [
            Answer(struck[query].code)
            if query in struck
            else profiled.get(query) or self._answer(part, query, moment)
            for query in queries
        ]

    def events(self) -> list[Event]:
        """Give nothing: what a driver tells by itself is not simulated."""
        return []

    def close(self) -> None:
        """Forget what is open; nothing answers until it is opened again."""
        self._gpm.close()
        self._started, self._parts = False, {}

    def _struck(self, uuid: str, part: Part, queries: Sequence[Query]) -> dict[Query, Fault]:
        """Let every call take its time, and give the faults that refuse some."""
        now_s, told, struck = self._now_s(), set[str](), {}
        for query in queries:
            travels = query.call in BATCHED & told
            told.add(query.call)
            if not travels:
                self.on_call(uuid, query.call)
            if fault := self._faults.strike(query, part.gpu, now_s, travels=travels):
                struck[query] = fault
        return struck

    def _built(self, index: int) -> Gpu:
        spec = self._spec
        chance = Chance(spec.box.name, spec.seed, index)
        phases = timetable(chance.part("jobs"), spec.load)
        shares, alone = spec.box.shares(index), spec.gpus == 1
        return Gpu(spec.box.board, phases, index, chance, shares, alone=alone)

    def _start(self) -> None:
        self.on_call("", INIT)
        if fault := self._faults.strike(Query(INIT), None, self._now_s()):
            text = f"{INIT}: code {fault.code}, which fault={fault.text} asks of the simulation"
            raise BackendError(fault.code, text, REMEDIES.get(fault.code, "Leave that fault out"))
        self._started = True

    def _open_gpu(self, index: int, exclude: frozenset[str]) -> Refused | None:
        device, gpu = self._spec.box.device(index), self._gpus[index]
        if exclude & {device.uuid, str(index)}:
            return None
        self.on_call(str(index), HANDLE)  # the UUID is not known before there is a handle
        if fault := self._faults.strike(Query(HANDLE, (index,)), index, self._now_s()):
            return Refused(index, fault.code, device.uuid if device.uuid in self._seen else "")
        self._parts[device.uuid] = Part(device, gpu, index, gpu.chance)
        for state in gpu.instances:
            part = Part(instance(device, state.share), state, index, state.chance)
            if part.device.uuid not in exclude:
                self._parts[part.device.uuid] = part
        return None

    def _profiled(self, uuid: str, part: Part, queries: Sequence[Query]) -> dict[Query, Answer]:
        """Answer GPM metrics, with a sample of this moment."""
        ids = {query: query.args[0] for query in queries if query.call == gpm.CALL}
        read = self._gpm.ask(uuid, part.state, list(ids.values())) if ids else {}
        return {query: read[number] for query, number in ids.items()}

    def _answer(self, part: Part, query: Query, moment: Moment) -> Answer:
        if query.call == PEERS and isinstance(part.state, Gpu):
            return links.peers(part.state, self._others(part), query.args)
        known = reply(part.state, query, moment)
        return self._typical(part, query, moment.tick * TICK_S) if known is None else known

    def _others(self, part: Part) -> list[str]:
        """Give the UUIDs of the other GPUs that are open."""
        others = (other.device for other in self._parts.values() if other.gpu != part.gpu)
        return [device.uuid for device in others if not device.is_instance]

    def _typical(self, part: Part, query: Query, running_s: float) -> Answer:
        """Answer what nobody modelled from the records of the catalog that ask for it."""
        elapsed = typical.Elapsed(running_s, self._gpus[part.gpu].loaded_s)
        places = self._index.get(query, ())
        value = typical.answer(places, part.device, part.chance, elapsed)
        return Answer(Code.NOT_SUPPORTED) if value is None else Answer(0, value)

    def _typical_mean(self, uuid: str, number: int, end_s: float) -> Answer:
        """Answer a GPM metric that nobody modelled: its records expect [mean, ...]."""
        found = self._typical(self._parts[uuid], Query(gpm.CALL, (number,)), end_s)
        return Answer(0, found.value[0]) if found.ok else Answer(Code.INVALID_ARGUMENT)

    def _now_s(self) -> float:
        """Give the seconds by which faults are timed."""
        return self._clock() - self._start_s

    def _moment(self) -> Moment:
        """Give the newest tick, and when it was by the wall clock.

        Read one after the other, the two clocks are never quite as far apart as before; their
        distance is kept until it really changes, so that no sample is given twice.
        """
        now = self._clock()
        offset_us = self._time_ns() // 1000 - round(now * 1e6)
        if abs(offset_us - self._offset_us) > DRIFT_US:
            self._offset_us = offset_us
        tick = floor(now / TICK_S)
        return Moment(tick, self._offset_us + tick * TICK_US)


def unheard(_uuid: str, _function: str) -> None:
    """Hear of a call, and do nothing about it."""
