"""A real Collector is stopped, and the agent is killed meanwhile: nothing that was queued is lost.

The same in real lengths: `python -m tests.e2e.outage`.
"""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from .agent import Agent
from .binaries import Binaries
from .ledger import Account, Queued, arrivals
from .outage import KEPT, MEMORY, NODE, Outage, Outcome, Plan, agent, table, target
from .servers import Collector

pytestmark = pytest.mark.e2e

KILLS = 2
INTERVAL_S = 0.25
TICKS = 16
LIVES = range(KILLS + 1)


@pytest.fixture(scope="module")
def outcome(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    outcome = Outage(binaries, tmp_path_factory.mktemp("outage"), Plan(INTERVAL_S)).play()
    print(table(outcome))
    return outcome


def test_a_queue_on_disk_loses_nothing_to_an_outage_and_two_kills(outcome: Outcome) -> None:
    account = outcome.accounts[KEPT]
    assert [account.lost(life) for life in LIVES] == [0, 0, 0]
    assert account.dropped == 0
    assert account.waiting(0) >= Plan(INTERVAL_S).half


def test_what_a_kill_sends_twice_is_one_batch_at_most_and_the_same(outcome: Outcome) -> None:
    account = outcome.accounts[KEPT]
    assert account.duplicates <= KILLS
    assert account.altered == []


def test_the_oldest_is_sent_first_across_kills(outcome: Outcome) -> None:
    assert all(account.in_order for account in outcome.accounts.values())


def test_a_queue_in_memory_loses_what_waited_at_the_kill_and_nothing_since(
    outcome: Outcome,
) -> None:
    account = outcome.accounts[MEMORY]
    assert 0 < account.lost(0) <= account.waiting(0)
    assert (account.lost(1), account.lost(2)) == (0, 0)


def test_a_target_that_is_down_does_not_hold_up_another(binaries: Binaries, tmp_path: Path) -> None:
    for name in ("well", "ill"):
        (tmp_path / name).mkdir()
    well, ill = Collector(binaries, tmp_path / "well"), Collector(binaries, tmp_path / "ill")
    pushing = agent(tmp_path, [target(one, INTERVAL_S, {}) for one in (well, ill)])
    with well, ExitStack() as stack:
        with silent(ill):
            stack.enter_context(pushing)
            # In step with the other, whose attempts take 10 s each, this would take minutes.
            well.wait_for(lambda batches: len(arrivals(batches)) >= TICKS)
            assert pushing.exports(MEMORY)["exported"] == 0
        with ill:
            ill.wait_for(lambda batches: len(arrivals(batches)) >= TICKS)
            queued = [asked(pushing, part) for part in (KEPT, MEMORY)]
            ended_ns = time.time_ns()
            pushing.stop()
    for collector, said in zip((well, ill), queued, strict=True):
        came = [one for one in arrivals(collector.batches()) if one.time_ns <= ended_ns]
        account = Account(came, [ended_ns], [said], INTERVAL_S, NODE)
        assert (account.lost(0), account.duplicates, account.in_order) == (0, 0, True)


@contextmanager
def silent(collector: Collector) -> Iterator[None]:
    """Listen in a Collector's place, and never answer: that is worse than nobody being there."""
    port = urlsplit(collector.http_endpoint).port
    assert port
    with socket.create_server(("127.0.0.1", port)):
        yield


def asked(pushing: Agent, part: str) -> Queued:
    return Queued.of(pushing.exports(part), time.time_ns())
