"""Counts Xids of two sources as one, and drafts a log record for each. Pure: time is an argument.

The driver's event and the kernel's line tell of the same Xid, each at most once. So within a burst
(until a code was not heard of for 10 s) the count of a code on a GPU is the larger of the two
sources' counts: a pair counts once, repeats beyond the pair count each, a storm that one source
thins out keeps the other's count, and neither can be hidden by what the other missed an hour ago.

A record is made where the count grows, waits up to 2 s for the kernel's text, and is one of ten a
minute for each code on each GPU; the rest is told in one more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from otel_gpu.events.happening import NO_INSTANCE, Happening, Source
from otel_gpu.events.record import Record
from otel_gpu.events.subject import located
from otel_gpu.events.telling import repeated, told
from otel_gpu.model import Snapshot

BURST_S = 10.0
WAIT_S = 2.0
MOST_RECORDS = 10
WINDOW_S = 60.0
MOST_KEYS = 4096
"""Codes of GPUs that are counted: more than any node has, and each stays for ever."""

Key = tuple[str, int]
"""Where (a GPU's UUID; its PCI address while it is not known; a switch's name), and which code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How often one code came to one GPU: what is settled, and what this burst's sources told."""

    first_s: float
    last_s: float
    settled: int = 0
    nvml: int = 0
    kernel: int = 0
    note: int = 0

    @property
    def total(self) -> int:
        """The count."""
        return self.settled + max(self.nvml, self.kernel, self.note)

    def heard(self, source: Source, now_s: float) -> Count:
        """Take one happening more. Notes of one burst are of one Xid, however many they are."""
        count = self
        if now_s - self.last_s > BURST_S:
            count = Count(first_s=self.first_s, last_s=now_s, settled=self.total)
        if source is Source.NVML:
            return replace(count, last_s=now_s, nvml=count.nvml + 1)
        if source is Source.KERNEL:
            return replace(count, last_s=now_s, kernel=count.kernel + 1)
        return replace(count, last_s=now_s, note=1)


@dataclass(frozen=True, slots=True)
class Draft:
    """A record to come: what is known so far, from whom, since when."""

    key: Key
    happening: Happening
    sources: frozenset[Source]
    since_s: float

    def lacks(self, source: Source) -> bool:
        """Whether this source has not told of it yet."""
        return source not in self.sources

    def joined_by(self, other: Happening) -> Draft:
        """Take in what another source tells of the same Xid."""
        merged = completed(self.happening, other)
        return replace(self, happening=merged, sources=self.sources | {other.source})


@dataclass(frozen=True, slots=True)
class Window:
    """The present minute of one key: records drafted in it, Xids beyond them, the last of those."""

    began_s: float
    drafted: int = 0
    rest: int = 0
    last: Happening | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """All that is remembered. `since_ns` is Unix time, where the counts began from 0."""

    since_ns: int
    now_s: float = 0.0  # monotonic, of the last fold
    counts: Mapping[Key, Count] = field(default_factory=dict)
    drafts: tuple[Draft, ...] = ()
    windows: Mapping[Key, Window] = field(default_factory=dict)


def folded(
    tally: Tally,
    happenings: Iterable[Happening],
    snapshot: Snapshot,
    now_s: float,
    wait_s: float = WAIT_S,
) -> tuple[Tally, list[Record]]:
    """Take what happened since the last fold; give the records that are ready to be sent.

    To be called every second or so, also when nothing happened. `now_s` is monotonic; `wait_s` is 0
    where there is no kernel log to wait for. Happenings of GPUs that the configuration leaves out
    are left out here too.
    """
    for happening in happenings:
        where = located(happening, snapshot)
        if where is not None:
            tally = heard(tally, (where, happening.code), happening, now_s)
    ready = [draft for draft in tally.drafts if is_ready(draft, now_s, wait_s)]
    over = {key: one for key, one in tally.windows.items() if now_s - one.began_s >= WINDOW_S}
    records = [told(draft.happening, snapshot) for draft in ready]
    records += rest(over, snapshot)
    return replace(
        tally,
        now_s=now_s,
        drafts=tuple(draft for draft in tally.drafts if draft not in ready),
        windows={key: one for key, one in tally.windows.items() if key not in over},
    ), records


def ended(tally: Tally, snapshot: Snapshot) -> list[Record]:
    """Give the records that still wait for something, as nothing more will come."""
    records = [told(draft.happening, snapshot) for draft in tally.drafts]
    return records + list(rest(tally.windows, snapshot))


def heard(tally: Tally, key: Key, happening: Happening, now_s: float) -> Tally:
    """Count one happening, and draft its record or complete the one that it belongs to."""
    if key not in tally.counts and len(tally.counts) >= MOST_KEYS:
        return tally
    before = tally.counts.get(key) or Count(first_s=now_s, last_s=now_s)
    after = before.heard(happening.source, now_s)
    tally = replace(tally, counts={**tally.counts, key: after})
    if after.total == before.total:
        return replace(tally, drafts=tuple(paired(tally.drafts, key, happening)))
    window = tally.windows.get(key) or Window(now_s)
    if window.drafted >= MOST_RECORDS:
        window = replace(window, rest=window.rest + 1, last=happening)
        return replace(tally, windows={**tally.windows, key: window})
    draft = Draft(key, happening, frozenset({happening.source}), now_s)
    window = replace(window, drafted=window.drafted + 1)
    return replace(tally, drafts=(*tally.drafts, draft), windows={**tally.windows, key: window})


def paired(drafts: Iterable[Draft], key: Key, happening: Happening) -> Iterator[Draft]:
    """Give the drafts, of which the oldest that it can belong to has taken the happening in."""
    free = True
    for draft in drafts:
        if free and draft.key == key and draft.lacks(happening.source):
            free = False
            yield draft.joined_by(happening)
        else:
            yield draft


def completed(first: Happening, other: Happening) -> Happening:
    """Join what two sources tell of one Xid: the kernel's line has more, the event was first."""
    more, less = (other, first) if other.source is Source.KERNEL else (first, other)
    return replace(
        more,
        time_ns=min(first.time_ns, other.time_ns),
        uuid=more.uuid or less.uuid,
        pci_address=more.pci_address or less.pci_address,
        gpu_instance=less.gpu_instance if more.gpu_instance == NO_INSTANCE else more.gpu_instance,
        compute_instance=less.compute_instance
        if more.compute_instance == NO_INSTANCE
        else more.compute_instance,
        text=more.text or less.text,
    )


def is_ready(draft: Draft, now_s: float, wait_s: float) -> bool:
    """Whether there is nothing more to wait for: the kernel's line is all that can add to it."""
    return not draft.lacks(Source.KERNEL) or now_s - draft.since_s >= wait_s


def rest(over: Mapping[Key, Window], snapshot: Snapshot) -> Iterator[Record]:
    """Tell, of each minute that is over, what had no record of its own."""
    for window in over.values():
        if window.last is not None:
            yield repeated(window.last, window.rest, snapshot, WINDOW_S)
