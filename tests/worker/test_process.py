from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from otel_gpu.model import Answer, BackendError, Code, Query
from otel_gpu.worker.channel import WaitEndedError
from otel_gpu.worker.failures import WorkerDied, WorkerHung
from otel_gpu.worker.process import Worker, abandoned
from tests.worker.faults import Faults, eventually
from tests.worker.faulty import EXCLUDED, LONG, MODULES, POWER, UUIDS, Broken

EACH = [(uuid, [POWER]) for uuid in UUIDS]


@pytest.fixture
def worker(faults: Faults) -> Iterator[Worker]:
    worker = Worker.start(faults.backend)
    yield worker
    worker.close(timeout_s=0.5)


def test_a_machine_is_opened_and_asked(worker: Worker) -> None:
    system = worker.open()
    assert [device.uuid for device in system.devices] == list(UUIDS)
    before_s = time.monotonic()
    answered = worker.ask([("GPU-b", [POWER, LONG]), ("GPU-a", [POWER])])
    assert [one.uuid for one in answered] == ["GPU-b", "GPU-a"]
    assert answered[0].answers == [Answer(0, 1), Answer(0, "x" * 10**6)]
    assert answered[1].answers == [Answer(0, 3)]
    for one in answered:
        assert before_s <= one.read_s <= time.monotonic()


def test_the_worker_loads_nothing_that_only_the_agent_needs(worker: Worker) -> None:
    worker.open()
    ((answered,),) = [one.answers for one in worker.ask([("GPU-a", [MODULES])])]
    modules = {name.partition(".")[0] for name in answered.value}
    assert "otel_gpu" in modules
    assert not modules & {"pydantic", "opentelemetry", "typer", "yaml", "pynvml", "site", "asyncio"}
    inner = {name for name in answered.value if name.startswith("otel_gpu.catalog")}
    assert not inner


def test_a_driver_that_does_not_open_says_so_and_may_open_later(
    worker: Worker, faults: Faults
) -> None:
    faults.start("refuse", "9")
    with pytest.raises(BackendError, match=r"NVML said 9\. do something") as error:
        worker.open()
    assert (error.value.code, error.value.remedy) == (9, "do something")
    faults.stop("refuse")
    assert worker.open().devices


def test_what_is_left_out_is_not_opened(worker: Worker) -> None:
    exclude = frozenset({"GPU-b", "1"})
    assert [device.uuid for device in worker.open(exclude).devices] == ["GPU-a", "GPU-c"]
    assert worker.ask([("GPU-a", [EXCLUDED])])[0].answers == [Answer(0, ["1", "GPU-b"])]


def test_a_hang_is_named_in_time_and_other_answers_are_kept(worker: Worker, faults: Faults) -> None:
    worker.open()
    faults.start("hang")
    before_s = time.monotonic()
    with pytest.raises(WorkerHung, match="nvmlDeviceGetPowerUsage on GPU GPU-b") as hung:
        worker.ask(EACH, deadline_s=0.3)
    assert 0.3 <= time.monotonic() - before_s < 2
    assert (hung.value.call, hung.value.uuid) == ("nvmlDeviceGetPowerUsage", "GPU-b")
    assert [one.uuid for one in hung.value.answered] == ["GPU-a"]


def test_a_gpu_that_hangs_while_it_is_opened_is_named_by_its_index(
    worker: Worker, faults: Faults
) -> None:
    worker.open()
    faults.start("hang-open")
    with pytest.raises(WorkerHung) as hung:
        worker.open(deadline_s=0.3)
    assert (hung.value.call, hung.value.uuid) == ("nvmlDeviceGetHandleByIndex", "1")


def test_a_crash_says_its_signal_and_its_place(worker: Worker, faults: Faults) -> None:
    worker.open()
    faults.start("crash")
    with pytest.raises(WorkerDied, match="Fatal Python error: Segmentation fault") as died:
        worker.ask(EACH)
    assert (died.value.status, died.value.uuid) == (-signal.SIGSEGV, "GPU-b")
    assert [one.uuid for one in died.value.answered] == ["GPU-a"]
    assert "faulty.py" in died.value.tail  # where it was, as Python saw it


def test_a_backend_that_breaks_leaves_its_error() -> None:
    worker = Worker.start(f"python:{Broken.__module__}:Broken")
    with pytest.raises(WorkerDied, match="RuntimeError: this backend is broken") as died:
        worker.open()
    assert died.value.status == 1
    worker.close()


def test_a_backend_that_does_not_exist_is_refused() -> None:
    worker = Worker.start("python:no_such_module:Backend")
    with pytest.raises(BackendError, match="no_such_module"):
        worker.open()
    worker.close()


def test_asking_before_opening_is_answered_with_a_code(worker: Worker) -> None:
    assert worker.ask([("GPU-a", [POWER, Query("other")])])[0].answers == [
        Answer(Code.UNINITIALIZED),
        Answer(Code.UNINITIALIZED),
    ]


def test_what_a_library_prints_does_not_get_between_the_messages(
    worker: Worker, faults: Faults
) -> None:
    worker.open()
    faults.start("noise")
    for _ in range(3):
        assert len(worker.ask(EACH)) == len(UUIDS)


def test_closing_releases_the_driver_and_ends_the_process(faults: Faults) -> None:
    worker = Worker.start(faults.backend)
    worker.open()
    worker.close()
    assert faults.closed
    assert not alive(worker.pid)


def test_sigterm_releases_the_driver_too(faults: Faults) -> None:
    worker = Worker.start(faults.backend)
    worker.open()
    os.kill(worker.pid, signal.SIGTERM)
    assert eventually(lambda: faults.closed)
    with pytest.raises(WorkerDied) as died:
        worker.ask(EACH)
    assert died.value.status == 0
    worker.close()


def test_an_interrupt_at_the_keyboard_is_not_the_workers_business(worker: Worker) -> None:
    worker.open()
    os.kill(worker.pid, signal.SIGINT)
    assert os.getsid(worker.pid) == worker.pid  # nor does the terminal reach it
    assert worker.ask(EACH)


@pytest.mark.parametrize("fault", ["hang", "stubborn"])
def test_a_hung_worker_is_gone_soon_after_it_is_closed(faults: Faults, fault: str) -> None:
    worker = Worker.start(faults.backend)
    worker.open()
    faults.start(fault)
    with pytest.raises(WorkerHung):
        worker.ask(EACH, deadline_s=0.2)
    before_s = time.monotonic()
    worker.close(timeout_s=0.3)
    assert time.monotonic() - before_s < 1.5
    assert not alive(worker.pid)


def test_a_stopped_worker_is_gone_soon_after_it_is_closed(faults: Faults) -> None:
    worker = Worker.start(faults.backend)
    worker.open()
    os.kill(worker.pid, signal.SIGSTOP)
    before_s = time.monotonic()
    worker.close(timeout_s=0.2)
    assert time.monotonic() - before_s < 1.5
    assert not alive(worker.pid)


class SecondInterrupt(threading.Event):
    """Stands where a signal handler raises: at any moment of the farewell."""

    def is_set(self) -> bool:
        raise KeyboardInterrupt


def test_an_interrupted_farewell_leaves_no_stopped_worker_behind(faults: Faults) -> None:
    worker = Worker.start(faults.backend, SecondInterrupt())
    os.kill(worker.pid, signal.SIGSTOP)
    with pytest.raises(KeyboardInterrupt):
        worker.close()
    with pytest.raises(ProcessLookupError):
        os.kill(worker.pid, 0)


def test_a_process_that_does_not_end_is_not_waited_for_and_is_reaped_later(faults: Faults) -> None:
    worker = Worker.start(faults.backend)
    worker.open()
    os.kill(worker.pid, signal.SIGSTOP)
    worker.close(timeout_s=0.0)  # no time at all: as if the kernel still held it
    assert eventually(lambda: worker.pid not in abandoned())
    assert not alive(worker.pid)


def test_another_thread_can_end_the_waiting(faults: Faults) -> None:
    interrupted = threading.Event()
    worker = Worker.start(faults.backend, interrupted)
    worker.open()
    faults.start("hang")
    threading.Timer(0.1, interrupted.set).start()
    before_s = time.monotonic()
    with pytest.raises(WaitEndedError):
        worker.ask(EACH, deadline_s=30)
    worker.close(timeout_s=0.5)
    assert time.monotonic() - before_s < 2


def alive(pid: int) -> bool:
    """Whether there is such a process, or what is left of one that nobody reaped."""
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False
