"""Which GPUs hung: each is left out for a while, and a new hang makes the while longer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import NamedTuple

FIRST_S = 60.0
LONGEST_S = 3600.0


class Hang(NamedTuple):
    """An NVML call that did not return: on which GPU, and since when (monotonic seconds).

    `uuid` is "" for a call that is about no GPU, and NVML's index as text for a GPU that hung
    before it told its UUID.
    """

    call: str
    uuid: str
    since: float


@dataclass(frozen=True, slots=True)
class Suspect:
    """A hang, the names (UUID, index) by which its GPU is left out, and until when."""

    hang: Hang
    names: frozenset[str]
    until_s: float
    delay_s: float = FIRST_S

    def again(self, hang: Hang, now: float) -> Suspect:
        """Leave it out for twice as long; it has been hanging since the first time."""
        delay_s = min(2 * self.delay_s, LONGEST_S)
        since = hang._replace(uuid=self.hang.uuid, since=self.hang.since)
        return replace(self, hang=since, delay_s=delay_s, until_s=now + delay_s)


class Suspects:
    """The GPUs that hung and have not answered since. Readers of any thread see a whole tuple."""

    def __init__(self) -> None:
        self._all: tuple[Suspect, ...] = ()

    @property
    def hangs(self) -> tuple[Hang, ...]:
        """The hangs that no answer has disproved yet."""
        return tuple(suspect.hang for suspect in self._all)

    def accuse(self, hang: Hang, names: frozenset[str], now: float) -> None:
        """Note a hang; `names` are its GPU's UUID and index, as far as they are known."""
        known = next((one for one in self._all if hang.uuid in (one.hang.uuid, *one.names)), None)
        entry = known.again(hang, now) if known else Suspect(hang, names, now + FIRST_S)
        self._all = (*(one for one in self._all if one is not known), entry)

    def clear(self, uuids: Collection[str]) -> None:
        """Drop the suspicion of GPUs that answered."""
        if self._all:
            self._all = tuple(one for one in self._all if one.hang.uuid not in uuids)

    def settle(self, present: Collection[str], now: float) -> None:
        """After an enumeration that got through: who was in it and is not there is gone."""
        self._all = tuple(
            one
            for one in self._all
            if one.hang.uuid in present or (one.names and one.until_s > now)
        )

    def excluded(self, now: float) -> frozenset[str]:
        """Give the names that are to be left out at this moment."""
        return frozenset(name for one in self._all if one.until_s > now for name in one.names)
