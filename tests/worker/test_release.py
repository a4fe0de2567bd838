"""The GPUs are let go for whoever needs them, and taken back."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from otel_gpu.model import Code
from otel_gpu.worker.bootstrap import environment
from tests.worker.faults import Faults, eventually
from tests.worker.faulty import UUIDS
from tests.worker.test_supervisor import Watched


@pytest.fixture
def watched(faults: Faults) -> Iterator[Watched]:
    watched = Watched(faults.backend)
    yield watched
    watched.door.close()


def test_what_is_released_is_closed_and_stays_so_until_it_is_taken_back(
    watched: Watched, faults: Faults
) -> None:
    watched.opened()
    watched.door.release("an upgrade")
    assert not watched.opened(after_s=1)
    assert faults.closed
    assert watched.door.wait_until_free(0.0)
    trouble = watched.door.trouble
    assert trouble is not None
    assert (trouble.code, trouble.text) == (Code.UNINITIALIZED, "an upgrade")
    assert watched.door.usage() is None
    assert not watched.opened(after_s=1e6)
    watched.door.resume()
    assert watched.opened(after_s=1) == list(UUIDS)
    assert watched.door.trouble is None
    assert not sum(watched.door.restarts.values())


def test_a_release_for_a_while_ends_by_itself(watched: Watched) -> None:
    watched.opened()
    watched.door.release("a GPU leaves", for_s=10.0)
    assert not watched.opened(after_s=1)
    assert watched.opened(after_s=10) == list(UUIDS)


def test_a_short_release_does_not_end_a_longer_one(watched: Watched) -> None:
    watched.opened()
    watched.door.release("a person asked")
    watched.door.release("a GPU leaves", for_s=10.0)
    assert not watched.opened(after_s=1)
    assert not watched.opened(after_s=100)
    assert "a person asked" in str(watched.door.trouble)


def test_a_call_that_hangs_is_broken_off(watched: Watched, faults: Faults) -> None:
    watched.door._deadline_s = 60.0
    watched.opened()
    faults.start("hang")
    asking = threading.Thread(target=watched.ask)
    asking.start()
    assert eventually(lambda: watched.door.waiting)
    watched.door.release("an upgrade")
    asking.join(10.0)
    assert not asking.is_alive()
    assert not watched.opened()
    assert watched.door.wait_until_free(0.0)


def test_release_and_resume_before_anybody_looked_is_nothing(watched: Watched) -> None:
    watched.opened()
    watched.door.release("an upgrade")
    watched.door.resume()
    assert watched.opened(after_s=1) == list(UUIDS)
    assert watched.ask() == list(UUIDS)


def test_a_call_that_was_broken_off_is_made_anew_when_resume_follows_at_once(
    watched: Watched,
) -> None:
    watched.opened()
    watched.door.release("an upgrade")
    assert watched.ask() == []
    watched.door.resume()
    assert watched.opened(after_s=1) == list(UUIDS)
    assert watched.ask() == list(UUIDS)


def test_what_was_never_open_can_be_kept_closed(watched: Watched) -> None:
    watched.door.release("an upgrade")
    assert not watched.opened()
    watched.door.resume()
    assert watched.opened(after_s=1) == list(UUIDS)


def test_the_workers_environment_has_none_of_the_agents_credentials() -> None:
    given = {
        "LD_LIBRARY_PATH": "/usr/lib",
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=secret",
        "NVML_MPS_DEVICE_ENUMERATION": "1",
    }
    assert environment(given) == {"LD_LIBRARY_PATH": "/usr/lib"}
