"""The forms a reading takes: how a record says what to ask, and what the answers mean.

Each is a value: it can be printed, compared, narrowed to a profile and asked for its questions.
What the methods mean is said once, by `model.Read`. Records are written with the functions of
`reading.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from otel_gpu.catalog.shape import Misshapen, number, scaled
from otel_gpu.model import (
    REASONS,
    Answer,
    Attributes,
    Code,
    Device,
    Missing,
    Outcome,
    Point,
    Profile,
    Query,
    Read,
    Reason,
)

UNASKED = Answer(Code.NO_DATA)

Step = str | int
Answers = Mapping[Query, Answer]
Served = Callable[[Query], bool]
Values = Mapping[Query, Any]


class Form:
    """What most forms share: they ask all they may, in every profile, and give nothing."""

    __slots__ = ()

    @property
    def source(self) -> str:
        return ""  # each form says it

    @property
    def queries(self) -> tuple[Query, ...]:
        return ()

    def wanted(self, device: Device, served: Served) -> tuple[Query, ...]:
        return self.queries

    def at(self, profile: Profile) -> Read | None:
        return self

    def read(self, device: Device, answers: Answers) -> Outcome:
        return [], []


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask(Form):
    """One number out of one answer: where it stands in the answer, and what makes it base units.

    `path` leads through a struct's members and a list's places. `profile`, where set, is this
    branch's own.
    """

    query: Query
    path: tuple[Step, ...] = ()
    scale: float = 1
    attributes: Attributes = ()
    profile: Profile | None = None

    @property
    def queries(self) -> tuple[Query, ...]:
        return (self.query,)

    def at(self, profile: Profile) -> Ask | None:
        return self if self.profile is None or self.profile <= profile else None

    def read(self, device: Device, answers: Answers) -> Outcome:
        answer = answers.get(self.query, UNASKED)
        if not answer.ok:
            return [], [refusal(self.query, answer.code, self.attributes)]
        value = number(answer.value, self.path)
        if value is None:
            return [], [invalid(self.query, answer.value, self.attributes)]
        return [Point(scaled(value, self.scale), self.attributes)], []

    @property
    def source(self) -> str:
        return f"`{self.query}`"


@dataclass(frozen=True, slots=True)
class Either(Form):
    """Several paths to one number. The first that serves wins; else the first one's gap stands."""

    paths: tuple[Read, ...]

    @property
    def queries(self) -> tuple[Query, ...]:
        return united(read.queries for read in self.paths)

    def wanted(self, device: Device, served: Served) -> tuple[Query, ...]:
        wanted: list[Query] = []
        for read in self.paths:
            questions = read.wanted(device, served)
            wanted += questions
            if questions and all(map(served, questions)):
                break
        return tuple(wanted)

    def at(self, profile: Profile) -> Either | None:
        kept = narrowed(self.paths, profile)
        return Either(kept) if kept else None

    def read(self, device: Device, answers: Answers) -> Outcome:
        first: list[Missing] = []
        for read in self.paths:
            points, missing = read.read(device, answers)
            if points:
                return points, []
            first = first or missing
        return [], first

    @property
    def source(self) -> str:
        return ", else ".join(read.source for read in self.paths)


WHERE = " (where it means this)"


@dataclass(frozen=True, slots=True)
class Only(Form):
    """A path that is taken only where a test of the device holds; elsewhere `why` is the gap."""

    test: Callable[[Device], bool]
    path: Read
    why: str

    @property
    def queries(self) -> tuple[Query, ...]:
        return self.path.queries

    def wanted(self, device: Device, served: Served) -> tuple[Query, ...]:
        return self.path.wanted(device, served) if self.test(device) else ()

    def at(self, profile: Profile) -> Only | None:
        path = self.path.at(profile)
        return None if path is None else Only(self.test, path, self.why)

    def read(self, device: Device, answers: Answers) -> Outcome:
        if self.test(device):
            return self.path.read(device, answers)
        return [], [Missing(Reason.UNSUPPORTED, self.why)]

    @property
    def source(self) -> str:
        return f"{self.path.source.removesuffix(WHERE)}{WHERE}"


@dataclass(frozen=True, slots=True)
class Split(Form):
    """One point for each branch; a branch that is refused leaves a gap and harms no other."""

    branches: tuple[Read, ...]

    @property
    def queries(self) -> tuple[Query, ...]:
        return united(read.queries for read in self.branches)

    def wanted(self, device: Device, served: Served) -> tuple[Query, ...]:
        return united(read.wanted(device, served) for read in self.branches)

    def at(self, profile: Profile) -> Split | None:
        kept = narrowed(self.branches, profile)
        return Split(kept) if kept else None

    def read(self, device: Device, answers: Answers) -> Outcome:
        points: list[Point] = []
        missing: list[Missing] = []
        for branch in self.branches:
            more, gaps = branch.read(device, answers)
            points += more
            missing += gaps
        return points, missing

    @property
    def source(self) -> str:
        named = ((label(read), read.source) for read in self.branches)
        return "; ".join(f"{name}: {source}" if name else source for name, source in named)


@dataclass(frozen=True, kw_only=True)
class Each(Form):
    """One point for each of a device's like parts (fans), as many as were enumerated.

    The place of a part is the question's last argument; `numbered`, it is added to it instead.
    """

    key: str
    prefix: str
    count: Callable[[Device], int]
    ask: Ask
    most: int
    numbered: bool = False
    profile: Profile | None = None

    @property
    def queries(self) -> tuple[Query, ...]:
        return tuple(part.query for part in self._every)

    def wanted(self, device: Device, served: Served) -> tuple[Query, ...]:
        return tuple(part.query for part in self._parts(device))

    def at(self, profile: Profile) -> Each | None:
        return self if self.profile is None or self.profile <= profile else None

    def read(self, device: Device, answers: Answers) -> Outcome:
        parts = self._parts(device)
        if not parts:
            return [], [Missing(Reason.UNSUPPORTED, f"this GPU has no {self.prefix}")]
        return Split(parts).read(device, answers)

    def _parts(self, device: Device) -> tuple[Ask, ...]:
        return self._every[: self.count(device)]

    @cached_property
    def _every(self) -> tuple[Ask, ...]:
        return tuple(map(self._part, range(self.most)))

    def _part(self, place: int) -> Ask:
        *args, last = self.ask.query.args if self.numbered else (*self.ask.query.args, 0)
        query = Query(self.ask.query.call, (*args, last + place))
        return replace(self.ask, query=query, attributes=((self.key, f"{self.prefix}{place}"),))

    @property
    def source(self) -> str:
        return f"`{self.ask.query.call}`, for each {self.prefix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking(Form):
    """A function of several answers, for shapes that the other forms cannot say.

    It gives the points, or the one reason why there are none. It raises Misshapen over an answer
    that it cannot read.
    """

    asked: tuple[Query, ...]
    function: Callable[[Device, Values], list[Point] | Missing]

    @property
    def queries(self) -> tuple[Query, ...]:
        return self.asked

    def read(self, device: Device, answers: Answers) -> Outcome:
        values: dict[Query, Any] = {}
        for query in self.asked:
            answer = answers.get(query, UNASKED)
            if not answer.ok:
                return [], [refusal(query, answer.code)]
            values[query] = answer.value
        try:
            result = self.function(device, values)
        except Misshapen as error:
            return [], [invalid(error.query, values[error.query])]
        return ([], [result]) if isinstance(result, Missing) else (result, [])

    @property
    def source(self) -> str:
        return ", ".join(f"`{query}`" for query in self.asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window(Form):
    """A number over a trailing window of the driver's ring buffer of samples.

    The answer is the ring, a list of [microseconds, value], one each `period_s`; asked again
    before it has turned over, it overlaps what was had before. The ledger keeps the window.
    """

    query: Query
    fold: Literal["max", "min"]
    scale: float = 1
    period_s: float = 0.02
    profile: Profile | None = None

    @property
    def queries(self) -> tuple[Query, ...]:
        return (self.query,)

    def at(self, profile: Profile) -> Window | None:
        return self if self.profile is None or self.profile <= profile else None

    def read(self, device: Device, answers: Answers) -> Outcome:
        """Give only the refusal: the points are the ledger's."""
        answer = answers.get(self.query, UNASKED)
        if answer.ok and not isinstance(answer.value, list | tuple):
            return [], [invalid(self.query, answer.value)]
        if answer.ok or answer.code == Code.NOT_FOUND:  # nothing new in the ring
            return [], []
        return [], [refusal(self.query, answer.code)]

    @property
    def source(self) -> str:
        return f"{self.fold}imum of `{self.query}` over the window"


@dataclass(frozen=True, slots=True)
class Described(Form):
    """Points made from what is known since the enumeration, without a question."""

    function: Callable[[Device], list[Point]]

    def read(self, device: Device, answers: Answers) -> Outcome:
        return self.function(device), []

    @property
    def source(self) -> str:
        return "the enumeration"


@dataclass(frozen=True, slots=True)
class Supplied(Form):
    """Points that the agent knows of itself; `origin` tells a reader of the docs from where."""

    origin: str

    @property
    def source(self) -> str:
        return self.origin


def label(read: Read) -> str:
    """Name a branch by the values of its attributes, and by the profile it needs of its own."""
    if isinstance(read, Only):
        return label(read.path)
    first = read.paths[0] if isinstance(read, Either) else read
    attributes: Attributes = getattr(first, "attributes", ())
    profile: Profile | None = getattr(first, "profile", None)
    name = "/".join(str(value) for _, value in attributes) or getattr(first, "prefix", "")
    return f"{name} (profile {profile.name.lower()})" if name and profile else name


def narrowed(reads: tuple[Read, ...], profile: Profile) -> tuple[Read, ...]:
    """Keep the parts that a profile includes."""
    kept = (read.at(profile) for read in reads)
    return tuple(read for read in kept if read is not None)


def united(groups: Iterable[tuple[Query, ...]]) -> tuple[Query, ...]:
    """Put the questions of several groups in one list, each once, in order."""
    return tuple(dict.fromkeys(query for group in groups for query in group))


def invalid(query: Query, value: Any, attributes: Attributes = ()) -> Missing:
    """Say that an answer is not what the question should give, naming both."""
    return Missing(Reason.INVALID, f"{query}: {value!r}", attributes)


def refusal(query: Query, code: int, attributes: Attributes = ()) -> Missing:
    """Say why a question has no answer, naming the question and the code."""
    reason = REASONS.get(code, Reason.NOT_READY)
    return Missing(reason, f"{query}: {CODE_TEXTS.get(code, f'NVML code {code}')}", attributes)


CODE_TEXTS: Mapping[int, str] = {
    Code.UNINITIALIZED: "the library is not initialised",
    Code.INVALID_ARGUMENT: "not known to this driver or GPU",
    Code.NOT_SUPPORTED: "not supported",
    Code.NO_PERMISSION: "not permitted",
    Code.NOT_FOUND: "nothing found",
    Code.TIMEOUT: "timed out",
    Code.FUNCTION_NOT_FOUND: "not in this driver's library",
    Code.GPU_IS_LOST: "the GPU is lost",
    Code.RESET_REQUIRED: "the GPU needs a reset",
    Code.NO_DATA: "no data",
    Code.ARGUMENT_VERSION_MISMATCH: "not in this form in this driver's library",
    Code.NOT_READY: "not ready",
    Code.UNKNOWN: "unknown error",
}
