"""A scripted machine: its GPUs, and what each question to each of them gets, said by the test."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from otel_gpu.backends.direct import Direct
from otel_gpu.model import Answer, BackendError, Code, Device, Event, Query, System

UNSUPPORTED = Answer(Code.NOT_SUPPORTED)

Given = Answer | Callable[[], Answer]


def gpu(place: int = 0) -> Device:
    """Make a GPU of which everything is known, and of which nothing is another's."""
    return Device(
        uuid=f"GPU-{place}",
        index=place,
        minor=place + 4,
        model="NVIDIA H200",
        serial=f"16520{place}",
        pci_address=f"0000:{place + 59:02x}:00.0",
        driver_version="580.159.04",
        bios_version="96.00.cf.00.01",
        firmware_version="580.159.04",
        part_number="900-21010-0040-000",
        architecture="Hopper",
        compute_capability="9.0",
    )


def instance(parent: Device, place: int = 1) -> Device:
    """Make a MIG instance, which has all its GPU's facts."""
    return Device(
        uuid=f"MIG-{parent.index}-{place}",
        index=parent.index,
        minor=parent.minor,
        model=parent.model,
        serial=parent.serial,
        pci_address=parent.pci_address,
        driver_version=parent.driver_version,
        bios_version=parent.bios_version,
        firmware_version=parent.firmware_version,
        part_number=parent.part_number,
        architecture=parent.architecture,
        compute_capability=parent.compute_capability,
        parent=parent.uuid,
        mig_profile="1g.18gb",
        gpu_instance=place,
        compute_instance=0,
    )


class Machine:
    """A `model.Backend` from memory. What was not said is not supported.

    `answers` may be changed between questions; a callable is called for each. `refuses` gives the
    code that a GPU says to everything. `asked` is the log of all questions.
    """

    def __init__(
        self, *devices: Device, answers: Mapping[tuple[str, Query], Given] | None = None
    ) -> None:
        self.on_call: Callable[[str, str], None] = lambda _uuid, _call: None
        self.devices = list(devices)
        self.answers: dict[tuple[str, Query], Given] = dict(answers or {})
        self.refuses: dict[str, int] = {}
        self.trouble: BackendError | None = None
        self.asked: list[tuple[str, Query]] = []
        self.driver_version = "580.159.04"

    def open(self, exclude: frozenset[str] = frozenset()) -> System:
        """Enumerate what is there now. Raises `trouble` while there is any."""
        if self.trouble:
            raise self.trouble
        devices = tuple(device for device in self.devices if device.uuid not in exclude)
        return System(driver_version=self.driver_version, devices=devices)

    def ask(self, uuid: str, queries: Sequence[Query]) -> list[Answer]:
        """Answer as the script says."""
        return [self._answer(uuid, query) for query in queries]

    def events(self) -> list[Event]:
        return []

    def close(self) -> None:
        """Hold nothing."""

    def say(self, uuid: str, query: Query, value: object) -> None:
        """Let a question be answered with a value from now on."""
        self.answers[uuid, query] = Answer(Code.SUCCESS, value)

    def times(self, uuid: str, query: Query) -> int:
        """Count how often a question was asked."""
        return self.asked.count((uuid, query))

    def _answer(self, uuid: str, query: Query) -> Answer:
        self.asked.append((uuid, query))
        if uuid in self.refuses:
            return Answer(self.refuses[uuid])
        given = self.answers.get((uuid, query), UNSUPPORTED)
        return given if isinstance(given, Answer) else given()


@dataclass(slots=True)
class Time:
    """A clock that stands until it is moved: monotonic seconds, and Unix time beside it."""

    now_s: float = 1000.0
    epoch_s: float = field(default=1_800_000_000.0)

    def monotonic(self) -> float:
        """Give monotonic seconds."""
        return self.now_s

    def unix_ns(self) -> int:
        """Give Unix nanoseconds."""
        return round((self.epoch_s + self.now_s) * 1e9)

    def pass_by(self, seconds: float) -> None:
        """Let time go by."""
        self.now_s += seconds


def driven(machine: Machine, time: Time) -> Direct:
    """Put a machine behind the sampler's door."""
    return Direct(machine, monotonic=time.monotonic)
