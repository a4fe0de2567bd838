"""A source that hangs, fails or changes its mind, asked in a thread of its own."""

import threading
import time
from collections.abc import Iterator

import pytest

from otel_gpu.attribution import Claims, Health, View
from otel_gpu.attribution.patient import Patient
from otel_gpu.model import Owner
from tests.running import wait_for

POD, JOB = Owner((("k8s.pod.name", "train-0"),)), Owner((("slurm.job.id", "17"),))


class Says:
    """A source that says what it is told to, or hangs, or fails."""

    def __init__(self) -> None:
        self.owner = POD
        self.fault: Exception | None = None
        self.up = True
        self.asked = 0
        self.closed = threading.Event()
        self.free = threading.Event()
        self.free.set()

    def claims(self, view: View) -> Claims:
        self.asked += 1
        self.free.wait(60)
        if self.fault:
            raise self.fault
        return Claims(dict.fromkeys(view.pids, (self.owner,)))

    def health(self) -> Health:
        if self.up:
            return Health("says", up=True)
        return Health("says", up=False, reason="unread", detail="it cannot be read")

    def close(self) -> None:
        self.closed.set()


VIEW, OTHER = View(pids={"GPU-0": (7,)}), View(pids={"GPU-0": (7, 8)})
HELD = Claims({"GPU-0": (POD,)})


@pytest.fixture
def says() -> Iterator[Says]:
    says = Says()
    yield says
    says.free.set()


@pytest.fixture
def patient(says: Says, now: list[float]) -> Iterator[Patient]:
    patient = Patient(says, 5.0, lambda: now[0])
    yield patient
    patient.close()


@pytest.fixture
def now() -> list[float]:
    return [100.0]


def test_an_answer_that_comes_soon_is_given_at_once(patient: Patient) -> None:
    assert patient.claims(VIEW) == HELD


def test_it_is_asked_again_after_a_while_and_not_before(
    patient: Patient, says: Says, now: list[float]
) -> None:
    patient.claims(VIEW)
    says.owner = JOB
    now[0] += 4.9
    assert patient.claims(VIEW) == HELD
    assert says.asked == 1
    now[0] += 0.1
    assert patient.claims(VIEW) == Claims({"GPU-0": (JOB,)})


def test_it_is_asked_at_once_when_other_processes_are_there(patient: Patient, says: Says) -> None:
    patient.claims(VIEW)
    patient.claims(OTHER)
    assert says.asked == 2


def test_one_that_hangs_is_not_waited_for_and_its_last_answer_is_kept(
    patient: Patient, says: Says, now: list[float]
) -> None:
    patient.claims(VIEW)
    says.free.clear()
    now[0] += 5.0
    begun_s = time.monotonic()
    for _ in range(50):
        now[0] += 1.0
        assert patient.claims(VIEW) == HELD
    assert time.monotonic() - begun_s < 5.0
    assert says.asked == 2
    health = patient.health()
    assert (health.up, health.reason, health.held_s) == (False, "timeout", 55.0)
    says.owner = JOB
    says.free.set()
    wait_for(lambda: patient.claims(VIEW) == Claims({"GPU-0": (JOB,)}), "another answer")
    assert patient.health().held_s is None


def test_one_that_says_it_could_not_read_is_believed_and_its_answer_ages(
    patient: Patient, says: Says, now: list[float]
) -> None:
    patient.claims(VIEW)
    says.up = False
    now[0] += 7.0
    patient.claims(VIEW)
    assert patient.health()[:3] == ("says", False, "unread")
    assert patient.health().held_s == 7.0


def test_a_fault_in_one_ends_neither_its_thread_nor_its_last_answer(
    patient: Patient, says: Says, now: list[float]
) -> None:
    patient.claims(VIEW)
    says.fault = ValueError("no")
    now[0] += 5.0
    assert patient.claims(VIEW) == HELD
    assert patient.health()[:4] == ("says", False, "error", "no")
    says.fault, says.owner = None, JOB
    now[0] += 5.0
    assert patient.claims(VIEW) == Claims({"GPU-0": (JOB,)})


def test_the_log_has_a_line_when_a_source_fails_and_when_it_is_back(
    patient: Patient, says: Says, now: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    for up in (True, True, False, False, True):
        says.up = up
        now[0] += 5.0
        patient.claims(VIEW)
    assert [record.getMessage() for record in caplog.records] == [
        "owners of GPUs, says: read",
        "owners of GPUs, says: it cannot be read; its last answer is kept",
        "owners of GPUs, says: read",
    ]


@pytest.mark.parametrize("used", [False, True])
def test_closed_it_closes_its_source_and_keeps_still(
    patient: Patient, says: Says, *, used: bool
) -> None:
    if used:
        patient.claims(VIEW)
    patient.close()
    assert says.closed.wait(5)
    asked = says.asked
    patient.claims(OTHER)
    assert says.asked == asked
