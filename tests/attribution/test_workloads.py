"""Energy and time by owner: who is charged what, and that nothing is lost or counted twice."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_gpu.attribution.workloads import (
    KEPT_S,
    LONGEST_S,
    Books,
    Energy,
    Use,
    charged,
    points,
    slices,
)
from otel_gpu.model import Account, Owner, Point
from tests.machine import gpu, instance

GPU, SPLIT = gpu(0), gpu(1)
POD, OTHER = Owner((("k8s.pod.name", "train-0"),)), Owner((("k8s.pod.name", "train-1"),))
NS = 1_000_000_000


class Rig:
    """Books that are written as the time passes; what a GPU uses is said with each step."""

    def __init__(self, *, mig: bool = False) -> None:
        self.devices = (SPLIT, replace(instance(SPLIT, 3), mig_profile="3g.71gb", mig_slots=7))
        self.device = GPU
        self.mig = mig
        self.books = Books()
        self.now_s = 50.0
        self.joules = 9000.0
        self.read_s = 50.0
        self.start_ns: int | None = 5

    def step(
        self,
        *owners: Owner,
        seconds: float = 0.0,
        joules: float | None = None,
        busy: dict[Owner | None, float] | None = None,
        shared: bool | None = None,
    ) -> None:
        """Let time pass and look; with `joules` the energy is read again."""
        self.now_s += seconds
        if joules is not None:
            self.joules += joules
            self.read_s = self.now_s
        energy = Energy(self.joules, self.start_ns, self.read_s)
        several = len(owners) > 1 if shared is None else shared
        use = Use(self.device, owners, several, energy, busy or {})
        uses = [use]
        if self.mig:
            whole, part = self.devices
            uses = [Use(whole, energy=energy), Use(part, owners, several)]
        self.books = charged(self.books, uses, self.now_s, int(self.now_s * NS))

    @property
    def energy(self) -> dict[tuple[str, str], float]:
        return {name(one): one.used for one in self.books.joules}

    @property
    def time(self) -> dict[tuple[str, str], float]:
        return {name(one): one.used for one in self.books.seconds}


def name(account: Account) -> tuple[str, str]:
    owner = str(account.owner.attributes[0][1]) if account.owner else ""
    return owner, account.method


def test_an_owner_s_accounts_begin_at_0_when_it_is_first_seen() -> None:
    rig = Rig()
    rig.step(joules=500.0)
    rig.step(POD, seconds=5.0, joules=500.0)
    assert rig.energy == {("train-0", "exclusive"): 0.0}
    assert rig.time == {("train-0", "exclusive"): 0.0}
    assert {one.start_ns for one in rig.books.joules} == {55 * NS}


def test_what_a_gpu_uses_while_one_owner_holds_it_is_that_owner_s() -> None:
    rig = Rig()
    rig.step(POD)
    for _ in range(4):
        rig.step(POD, seconds=5.0, joules=3500.0)
    assert rig.energy == {("train-0", "exclusive"): 14000.0}
    assert rig.time == {("train-0", "exclusive"): 20.0}


def test_between_two_readings_energy_is_divided_by_the_time_of_each() -> None:
    rig = Rig()
    rig.step(POD)
    rig.step(POD, seconds=1.0)
    rig.step(OTHER, seconds=1.0)
    rig.step(seconds=2.0)
    rig.step(seconds=1.0, joules=500.0)
    assert rig.energy == {
        ("train-0", "exclusive"): 200.0,
        ("train-1", "exclusive"): 200.0,
        ("", "unattributed"): 100.0,
    }
    assert rig.time == {("train-0", "exclusive"): 2.0, ("train-1", "exclusive"): 2.0}


def test_a_shared_gpu_s_energy_is_divided_by_sm_time() -> None:
    rig = Rig()
    busy: dict[Owner | None, float] = {POD: 0.6, OTHER: 0.2}
    rig.step(POD, OTHER, busy=busy)
    rig.step(POD, OTHER, seconds=5.0, joules=1000.0, busy=busy)
    assert rig.energy == {
        ("train-0", "sm_time"): pytest.approx(750.0),
        ("train-1", "sm_time"): pytest.approx(250.0),
    }
    assert rig.time == {("train-0", "equal"): 2.5, ("train-1", "equal"): 2.5}


def test_sm_time_of_nobody_known_is_unattributed() -> None:
    rig = Rig()
    busy: dict[Owner | None, float] = {POD: 0.3, None: 0.1}
    rig.step(POD, shared=True, busy=busy)
    rig.step(POD, shared=True, seconds=5.0, joules=1000.0, busy=busy)
    assert rig.energy == {
        ("train-0", "sm_time"): pytest.approx(750.0),
        ("", "unattributed"): pytest.approx(250.0),
    }


def test_of_a_shared_gpu_whose_processes_are_idle_or_not_seen_nothing_is_made_up() -> None:
    rig = Rig()
    rig.step(POD, OTHER)
    rig.step(POD, OTHER, seconds=5.0, joules=1000.0, busy={POD: 0.0, OTHER: 0.0})
    assert rig.energy == {("", "unattributed"): 1000.0}


def test_a_count_that_begins_anew_charges_nobody() -> None:
    rig = Rig()
    rig.step(POD)
    rig.step(POD, seconds=5.0, joules=1000.0)
    rig.start_ns, rig.joules = 60 * NS, 0.0
    rig.step(POD, seconds=5.0, joules=10.0)
    rig.step(POD, seconds=5.0, joules=1000.0)
    assert rig.energy == {("train-0", "exclusive"): 2000.0}


def test_a_step_over_a_long_sleep_counts_no_time() -> None:
    rig = Rig()
    rig.step(POD)
    rig.step(POD, seconds=LONGEST_S + 1)
    assert rig.time == {("train-0", "exclusive"): 0.0}


def test_an_owner_that_has_gone_is_told_of_for_a_while_and_leaves_nothing() -> None:
    rig = Rig()
    rig.step(POD)
    rig.step(seconds=5.0, joules=1000.0)
    rig.step(seconds=KEPT_S - 1, joules=100.0)
    assert ("train-0", "exclusive") in rig.energy
    rig.step(seconds=2.0)
    assert rig.energy.keys() == {("", "unattributed")}
    assert rig.time == {}


def test_an_owner_that_comes_back_soon_goes_on_where_it_was() -> None:
    rig = Rig()
    rig.step(POD)
    rig.step(seconds=5.0, joules=1000.0)
    rig.step(POD, seconds=5.0, joules=100.0)
    rig.step(POD, seconds=5.0, joules=1000.0)
    assert rig.energy[("train-0", "exclusive")] == 2000.0
    assert {one.start_ns for one in rig.books.seconds} == {50 * NS}


def test_what_becomes_known_of_an_owner_s_resource_makes_no_other_account() -> None:
    rig = Rig()
    rig.step(POD)
    known = replace(POD, resource=(("k8s.pod.uid", "7f6c"),))
    rig.step(known, seconds=5.0, joules=1000.0)
    assert [one.owner for one in rig.books.joules] == [known]


def test_an_instance_counts_time_by_its_slices_and_its_gpu_s_energy_is_nobody_s() -> None:
    rig = Rig(mig=True)
    rig.step(POD)
    rig.step(POD, seconds=7.0, joules=1000.0)
    assert rig.time == {("train-0", "exclusive"): pytest.approx(3.0)}
    assert rig.energy == {("", "unattributed"): 1000.0}
    assert [one.uuid for one in rig.books.joules] == [SPLIT.uuid]


@pytest.mark.parametrize(
    ("profile", "slots", "expected"),
    [
        ("3g.40gb", 7, 3 / 7),
        ("1c.3g.40gb", 7, 1 / 7),
        ("1g.10gb+me", 7, 1 / 7),
        ("2g.12gb", 4, 0.5),
        ("1g.10gb", 0, None),
        ("", 7, None),
    ],
)
def test_the_part_of_an_instance(profile: str, slots: int, expected: float | None) -> None:
    part = replace(instance(SPLIT), mig_profile=profile, mig_slots=slots)
    assert slices(part) == expected
    assert slices(SPLIT) == 1.0


def test_points_have_owner_method_and_start() -> None:
    accounts = [Account("GPU-0", POD, "exclusive", 5, 1.5), Account("GPU-0", None, "x", 6, 2.5)]
    method = "nvidia.gpu.attribution.method"
    assert list(points(accounts)) == [
        ("GPU-0", Point(1.5, (*POD.attributes, (method, "exclusive")), 5)),
        ("GPU-0", Point(2.5, ((method, "x"),), 6)),
    ]


OWNERS = st.lists(st.sampled_from([POD, OTHER]), unique=True, max_size=2)
BUSY = st.dictionaries(st.sampled_from([POD, OTHER, None]), st.floats(0, 1), max_size=3)
STEPS = st.lists(
    st.tuples(
        OWNERS, BUSY, st.booleans(), st.floats(0.1, 20), st.one_of(st.none(), st.floats(0, 2e4))
    ),
    max_size=40,
)


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_the_accounts_of_a_gpu_add_up_to_its_energy(
    steps: list[tuple[list[Owner], dict[Owner | None, float], bool, float, float | None]],
) -> None:
    rig = Rig()
    rig.step(POD)
    begun = rig.joules
    told: dict[tuple[str, str], float] = {}
    for owners, busy, mixed, seconds, joules in steps:
        shared = len(owners) > 1 or (mixed and bool(owners))
        rig.step(*owners, seconds=seconds, joules=joules, busy=busy, shared=shared)
        told |= rig.energy  # what has ended was told before
    rig.step(POD, seconds=1.0, joules=0.0)
    told |= rig.energy
    if sum(seconds for _, _, _, seconds, _ in steps) < KEPT_S:  # else an owner may come anew, at 0
        assert sum(told.values()) == pytest.approx(rig.joules - begun, rel=1e-9, abs=1e-6)
    assert all(used >= 0 for used in told.values())


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_no_more_time_is_held_than_passes(
    steps: list[tuple[list[Owner], dict[Owner | None, float], bool, float, float | None]],
) -> None:
    rig = Rig()
    rig.step(POD)
    for owners, busy, mixed, seconds, joules in steps:
        shared = len(owners) > 1 or (mixed and bool(owners))
        rig.step(*owners, seconds=seconds, joules=joules, busy=busy, shared=shared)
        assert sum(rig.time.values()) <= rig.now_s - 50.0 + 1e-6
