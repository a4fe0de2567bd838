from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from otel_gpu.model import Code, System
from otel_gpu.worker import suspects
from otel_gpu.worker.supervisor import LONGEST_HUNG_S, LONGEST_S, Supervisor, backoff_s
from tests.worker.faults import Faults
from tests.worker.faulty import EXCLUDED, POWER, UUIDS

EACH = [(uuid, [POWER]) for uuid in UUIDS]
POWERED = "nvmlDeviceGetPowerUsage"


class Watched:
    """A supervisor whose clock only the test moves."""

    def __init__(
        self, backend: str, deadline_s: float = 0.4, open_deadline_s: float = 20.0
    ) -> None:
        self.now_s = 1000.0
        self.door = Supervisor(
            backend,
            deadline_s=deadline_s,
            open_deadline_s=open_deadline_s,
            clock=lambda: self.now_s,
        )

    def system(self, after_s: float = 0.0) -> System | None:
        self.now_s += after_s
        return self.door.system(self.now_s)

    def opened(self, after_s: float = 0.0) -> list[str]:
        system = self.system(after_s)
        return [device.uuid for device in system.devices] if system else []

    def ask(self) -> list[str]:
        return [one.uuid for one in self.door.ask(EACH)]


@pytest.fixture
def watched(faults: Faults) -> Iterator[Watched]:
    watched = Watched(faults.backend)
    yield watched
    watched.door.close()


def test_a_machine_is_opened_once_and_asked_often(watched: Watched) -> None:
    first = watched.system()
    assert watched.system(after_s=1) is first
    assert [watched.ask(), watched.ask()] == [list(UUIDS)] * 2
    assert (watched.door.generation, watched.door.trouble, watched.door.hung) == (1, None, ())


def test_nothing_is_asked_before_it_is_opened(watched: Watched) -> None:
    assert watched.ask() == []


def test_reopening_enumerates_again_in_the_same_process(watched: Watched) -> None:
    watched.system()
    watched.door.reopen()
    assert watched.opened() == list(UUIDS)
    assert watched.door.generation == 2
    assert dict(watched.door.restarts) == {"hung": 0, "died": 0, "mismatch": 0}


def test_a_driver_that_does_not_open_is_tried_again_ever_more_rarely(
    watched: Watched, faults: Faults
) -> None:
    faults.start("refuse", "9")
    for wait_s in (1, 2, 4, 8, 16, 32, LONGEST_S, LONGEST_S):
        assert watched.system() is None
        trouble = watched.door.trouble
        assert trouble
        assert (trouble.code, trouble.remedy) == (9, "do something")
        faults.stop("refuse")
        assert watched.system(after_s=wait_s - 0.01) is None  # it was not tried, or it would open
        faults.start("refuse", "9")
        watched.now_s += 0.01
    faults.stop("refuse")
    assert watched.opened() == list(UUIDS)
    assert watched.door.trouble is None
    assert watched.door.restarts["mismatch"] == 0


def test_a_mismatched_library_gets_a_new_process_each_time(
    watched: Watched, faults: Faults
) -> None:
    faults.start("refuse", str(int(Code.LIB_RM_VERSION_MISMATCH)))
    assert watched.system() is None
    assert watched.system(after_s=1) is None
    assert watched.door.restarts["mismatch"] == 2
    faults.stop("refuse")
    assert watched.opened(after_s=2) == list(UUIDS)


def test_a_hang_is_told_and_survived_without_its_gpu(watched: Watched, faults: Faults) -> None:
    watched.system()
    faults.start("hang")
    assert watched.ask() == ["GPU-a"]
    assert watched.door.hung == ((POWERED, "GPU-b", 1000.0),)
    assert watched.door.trouble
    assert f"{POWERED} on GPU GPU-b did not return" in str(watched.door.trouble)
    assert "Reboot" in watched.door.trouble.remedy
    assert watched.opened() == ["GPU-a", "GPU-c"]  # at once: they wait behind it
    assert watched.door.ask([("GPU-a", [EXCLUDED])])[0].answers[0].value == ["1", "GPU-b"]
    assert watched.door.hung == ((POWERED, "GPU-b", 1000.0),)  # it is out, and not yet well
    assert watched.door.restarts["hung"] == 1
    assert watched.door.trouble is None


def test_a_gpu_that_hung_is_tried_again_and_cleared_by_its_answer(
    watched: Watched, faults: Faults
) -> None:
    watched.system()
    faults.start("hang")
    watched.ask()
    assert watched.opened(after_s=1) == ["GPU-a", "GPU-c"]
    faults.stop("hang")
    assert watched.opened(after_s=suspects.FIRST_S) == list(UUIDS)
    assert watched.door.hung
    assert watched.ask() == list(UUIDS)
    assert watched.door.hung == ()


def test_a_gpu_that_hangs_again_stays_out_for_longer(watched: Watched, faults: Faults) -> None:
    watched.system()
    faults.start("hang")
    watched.ask()
    watched.system(after_s=1)
    watched.ask()
    assert watched.opened(after_s=suspects.FIRST_S) == list(UUIDS)
    assert watched.ask() == ["GPU-a"]
    assert watched.opened(after_s=1) == ["GPU-a", "GPU-c"]
    assert watched.opened(after_s=suspects.FIRST_S) == ["GPU-a", "GPU-c"]
    assert watched.opened(after_s=suspects.FIRST_S) == list(UUIDS)
    assert watched.door.restarts["hung"] == 2


def test_a_gpu_that_hangs_while_it_is_opened_is_left_out_too(faults: Faults) -> None:
    watched = Watched(faults.backend, open_deadline_s=1.5)
    faults.start("hang-open")
    assert watched.system() is None
    assert watched.door.hung == (("nvmlDeviceGetHandleByIndex", "1", 1000.0),)
    assert watched.opened(after_s=1) == ["GPU-a", "GPU-c"]
    faults.stop("hang-open")
    assert watched.opened(after_s=suspects.FIRST_S) == list(UUIDS)
    assert list(watched.door.hung) == []  # it opened, which is what it was accused of
    watched.door.close()


def test_hangs_without_end_are_tried_ever_more_rarely(watched: Watched) -> None:
    watched.system()
    stop(watched)
    assert watched.ask() == []
    assert watched.system()
    for wait_s in (1, 2):
        stop(watched)
        assert watched.ask() == []
        assert watched.system(after_s=wait_s - 0.01) is None
        assert watched.system(after_s=0.01)


def test_the_longest_wait_has_a_limit() -> None:
    waits = [backoff_s(failures, LONGEST_HUNG_S) for failures in range(2000)]
    assert waits[:9] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert set(waits[9:]) == {LONGEST_HUNG_S}


def test_a_death_is_counted_and_survived(watched: Watched, faults: Faults) -> None:
    watched.system()
    faults.start("crash")
    assert watched.ask() == ["GPU-a"]
    assert "Segmentation fault" in str(watched.door.trouble)
    assert watched.opened(after_s=1) == list(UUIDS)
    assert watched.ask() == list(UUIDS)
    assert dict(watched.door.restarts) == {"hung": 0, "died": 1, "mismatch": 0}
    assert watched.door.generation == 2
    assert watched.door.hung == ()


def test_a_worker_killed_between_two_sweeps_is_noticed_at_the_next(watched: Watched) -> None:
    watched.system()
    os.kill(pid(watched), signal.SIGKILL)
    assert watched.ask() == []
    assert watched.opened(after_s=1) == list(UUIDS)
    assert watched.door.restarts["died"] == 1


def test_what_the_worker_costs_is_known_while_there_is_one(watched: Watched) -> None:
    assert watched.door.usage() is None
    watched.system()
    usage = watched.door.usage()
    assert usage
    assert usage.cpu_s > 0
    assert 5e6 < usage.rss_bytes < 60e6
    watched.door.close()
    assert watched.door.usage() is None


def test_closing_releases_the_driver_and_the_next_question_opens_it_again(
    watched: Watched, faults: Faults
) -> None:
    watched.system()
    watched.door.close()
    assert faults.closed
    assert watched.ask() == []
    assert watched.opened() == list(UUIDS)
    assert watched.door.generation == 2


def test_an_interrupt_ends_a_sweep_that_hangs_and_keeps_out_until_closed(faults: Faults) -> None:
    watched = Watched(faults.backend, deadline_s=30)
    watched.system()
    faults.start("hang")
    threading.Timer(0.1, watched.door.interrupt).start()
    before_s = time.monotonic()
    assert watched.ask() == []
    assert watched.system() is None
    watched.door.close()
    assert time.monotonic() - before_s < 3
    assert dict(watched.door.restarts) == {"hung": 0, "died": 0, "mismatch": 0}
    assert watched.opened() == list(UUIDS)
    watched.door.close()


CROWDED = """
import resource
from otel_gpu.worker.supervisor import Supervisor

door = Supervisor("nvml")
resource.setrlimit(resource.RLIMIT_NOFILE, (5, 5))
print(door.system(0.0), door.trouble)
"""


def test_a_system_without_room_for_a_process_is_a_trouble_like_others() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", CROWDED],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.startswith("None the NVML worker did not start: ")
    assert "Too many open files" in ran.stdout


def test_each_change_is_logged_once(
    watched: Watched, faults: Faults, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "otel_gpu.worker")
    faults.start("refuse", "9")
    watched.system()
    watched.system(after_s=1)
    faults.stop("refuse")
    watched.system(after_s=2)
    watched.system(after_s=1)
    assert [record.message for record in caplog.records] == [
        "NVML said 9. do something",
        "driver 580.1 open with 3 devices",
    ]


def pid(watched: Watched) -> int:
    worker = watched.door._worker
    assert worker
    return worker.pid


def stop(watched: Watched) -> None:
    """Make the worker hang without a call in flight, as a process that gets no processor does."""
    os.kill(pid(watched), signal.SIGSTOP)
