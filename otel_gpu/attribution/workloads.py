"""What each owner used of a GPU: energy while it held it, and time. Pure: books in, books out.

A GPU's energy between two readings goes to whoever held it in between, in proportion to the time
that each did; while several share it, in proportion to the time that their processes kept its SMs
busy. What is nobody's, or cannot be told, is unattributed: so the accounts of a GPU add up to what
it used since its first owner came. The energy of a MIG GPU is measured for the whole of it only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from otel_gpu.model import Account, Attributes, Device, Owner, Point

EXCLUSIVE = "exclusive"
SM_TIME = "sm_time"  # energy of a shared GPU, by the SM time of its processes
EQUAL = "equal"  # time on a shared GPU, the same for each
UNATTRIBUTED = "unattributed"
METHOD = "nvidia.gpu.attribution.method"

LONGEST_S = 60.0  # a step that took longer (a suspended machine) tells nothing of what was between
KEPT_S = 120.0  # after an owner has gone, so that every way out has seen its last count

_PROFILE = re.compile(r"(?:(\d+)c\.)?(\d+)g\.")


class Energy(NamedTuple):
    """What a GPU had used in all (J), since when it counts, and when that was read (monotonic)."""

    joules: float
    start_ns: int | None
    read_s: float


class Use(NamedTuple):
    """What was found of a GPU now: who holds it, and how their processes kept its SMs busy.

    `busy` is fractions of time by owner, of None for processes of nobody; empty where not known.
    """

    device: Device
    owners: tuple[Owner, ...] = ()
    shared: bool = False
    energy: Energy | None = None
    busy: Mapping[Owner | None, float] = MappingProxyType({})


Share = tuple[Owner | None, str]
"""An owner, or nobody, and the method by which its share is found."""

Key = tuple[str, Attributes | None, str]
"""UUID, owner and method. What only a Resource says of an owner may become known later."""


class Entry(NamedTuple):
    """An account, and when (monotonic) its owner was last there."""

    account: Account
    seen_s: float


@dataclass(frozen=True, slots=True)
class Page:
    """What is remembered of a GPU: its use and energy as last seen, and who held it since then.

    `begun_ns` is when its first owner came; 0: none did yet.
    """

    use: Use
    energy: Energy | None = None
    weights: Mapping[Share, float] = field(default_factory=dict)
    begun_ns: int = 0


@dataclass(frozen=True, slots=True)
class Books:
    """All accounts, in joules and in seconds, and a page for each GPU."""

    energy: Mapping[Key, Entry] = field(default_factory=dict)
    time: Mapping[Key, Entry] = field(default_factory=dict)
    pages: Mapping[str, Page] = field(default_factory=dict)
    now_s: float = 0.0

    @property
    def joules(self) -> tuple[Account, ...]:
        """The accounts of energy."""
        return tuple(entry.account for entry in self.energy.values())

    @property
    def seconds(self) -> tuple[Account, ...]:
        """The accounts of time."""
        return tuple(entry.account for entry in self.time.values())


def charged(books: Books, uses: Iterable[Use], now_s: float, time_ns: int) -> Books:
    """Charge what was used since the books were written last, and open accounts for who came.

    `now_s` is monotonic, `time_ns` Unix time.
    """
    passed_s = now_s - books.now_s
    passed_s = passed_s if passed_s <= LONGEST_S else 0.0
    uses = list(uses)
    held = {name for use in uses if use.owners for name in (use.device.uuid, use.device.parent)}
    energy, time = _Ledger(books.energy, now_s, time_ns), _Ledger(books.time, now_s, time_ns)
    pages: dict[str, Page] = {}
    for use in uses:
        uuid = use.device.uuid
        page = books.pages.get(uuid)
        if page is None:  # nothing is known of the time before
            page = Page(use)
        else:
            for share, part in holding(page.use).items():
                time.charge(uuid, share, part * passed_s)
            page = _weighed(page, passed_s)
        if not page.begun_ns and uuid in held:
            page = Page(use, use.energy, {}, time_ns)
        pages[uuid] = _settled(page, use, energy)
        for share in sharing(use) if page.begun_ns else ():
            energy.charge(uuid, share, 0.0)
        for share in holding(use):
            time.charge(uuid, share, 0.0)
    return Books(energy.live(pages), time.live(pages), pages, now_s)


def sharing(use: Use) -> Mapping[Share, float]:
    """Say who is charged which part of a GPU's energy now; the parts add up to 1."""
    if use.device.is_instance:
        return {}
    if not use.owners:
        return {(None, UNATTRIBUTED): 1.0}
    if not use.shared:
        return {(use.owners[0], EXCLUSIVE): 1.0}
    whole = sum(use.busy.values())
    if not whole:  # nobody's work: an idle GPU, or one whose processes cannot be seen
        return {(None, UNATTRIBUTED): 1.0}
    parts: dict[Share, float] = {}
    for owner, busy in use.busy.items():
        share = (owner, SM_TIME) if owner in use.owners else (None, UNATTRIBUTED)
        parts[share] = parts.get(share, 0.0) + busy / whole
    return parts


def holding(use: Use) -> Mapping[Share, float]:
    """Say who holds which part of a whole GPU now: of an instance, that of its slices."""
    part = slices(use.device)
    if not use.owners or part is None:
        return {}
    method = EQUAL if use.shared else EXCLUSIVE
    return {(owner, method): part / len(use.owners) for owner in use.owners}


def slices(device: Device) -> float | None:
    """Give how much of a GPU's compute a device is: 3/7 for a 3g instance of seven slices.

    None where the driver does not say how many slices there are.
    """
    if not device.is_instance:
        return 1.0
    profile = _PROFILE.match(device.mig_profile)
    if not profile or not device.mig_slots:
        return None
    return int(profile[1] or profile[2]) / device.mig_slots


def points(accounts: Iterable[Account]) -> Iterator[tuple[str, Point]]:
    """Give the points of a metric of accounts, each with its owner and method."""
    for account in accounts:
        owner = account.owner.attributes if account.owner else ()
        method: Attributes = ((METHOD, account.method),)
        yield account.uuid, Point(account.used, owner + method, account.start_ns)


def _weighed(page: Page, passed_s: float) -> Page:
    """Note for how long who was charged which part, until the next reading of the energy."""
    weights = dict(page.weights)
    for share, part in sharing(page.use).items():
        weights[share] = weights.get(share, 0.0) + part * passed_s
    return Page(page.use, page.energy, weights, page.begun_ns)


def _settled(page: Page, use: Use, energy: _Ledger) -> Page:
    """Charge what a GPU used since its energy was read before, if it was read again."""
    last, now = page.energy, use.energy
    if now is None or (last and now.read_s <= last.read_s):
        return Page(use, last, page.weights, page.begun_ns)
    whole = sum(page.weights.values())
    if page.begun_ns and last and whole and last.start_ns == now.start_ns:
        used = max(0.0, now.joules - last.joules)
        for share, weight in page.weights.items():
            energy.charge(use.device.uuid, share, used * weight / whole)
    return Page(use, now, {}, page.begun_ns)


class _Ledger:
    """The accounts of one unit, while they are being charged."""

    def __init__(self, entries: Mapping[Key, Entry], now_s: float, time_ns: int) -> None:
        self._entries = dict(entries)
        self._now_s, self._time_ns = now_s, time_ns

    def charge(self, uuid: str, share: Share, amount: float) -> None:
        owner, method = share
        key = (uuid, owner.attributes if owner else None, method)
        entry = self._entries.get(key)
        account = entry.account if entry else Account(uuid, owner, method, self._time_ns)
        charged = account._replace(owner=owner, used=account.used + amount)
        self._entries[key] = Entry(charged, self._now_s)

    def live(self, here: Collection[str]) -> Mapping[Key, Entry]:
        """Give the accounts without those whose owner, or whose GPU, has been gone for long."""
        return {
            key: entry
            for key, entry in self._entries.items()
            if self._now_s - entry.seen_s <= KEPT_S
            or (entry.account.owner is None and entry.account.uuid in here)
        }
