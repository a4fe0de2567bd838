from __future__ import annotations

from pathlib import Path

from otel_gpu.idling import SETTLED_S, Advice, Idling, uses

AFTER_S = 60.0


class Node:
    """A machine whose kernel module has users; `None`: the kernel does not tell."""

    def __init__(self, users: int | None = 3) -> None:
        self.users = users
        self.now_s = 1000.0
        self.idling = Idling(AFTER_S, lambda: self.users)

    def passes(self, seconds: float, running: int | None = 0) -> Advice:
        """Let time go by in steps of a second; give the last advice."""
        advice: Advice = None
        for _ in range(int(seconds)):
            self.now_s += 1
            advice = self.idling.advise(running, self.now_s) or advice
        return advice

    def released(self) -> Node:
        assert self.passes(AFTER_S + 1) == "release"
        return self


def test_gpus_are_let_go_when_nobody_used_one_for_the_time() -> None:
    node = Node()
    assert node.passes(AFTER_S - 1) is None
    assert node.passes(2) == "release"


def test_a_process_in_between_begins_the_time_anew() -> None:
    node = Node()
    assert node.passes(AFTER_S - 5) is None
    assert node.passes(1, running=2) is None
    assert node.passes(AFTER_S - 1) is None
    assert node.passes(1) == "release"


def test_processes_that_cannot_be_counted_may_be_there() -> None:
    assert Node().passes(AFTER_S * 3, running=None) is None


def test_gpus_are_taken_back_when_somebody_opens_one() -> None:
    node = Node().released()
    node.users = 2  # our own files are closed
    assert node.passes(AFTER_S * 5, running=None) is None
    node.users = 4
    assert node.passes(1, running=None) == "resume"


def test_who_leaves_meanwhile_does_not_hide_who_comes() -> None:
    node = Node().released()
    node.passes(SETTLED_S + 1, running=None)
    node.users = 1
    assert node.passes(2, running=None) is None
    node.users = 2
    assert node.passes(1, running=None) == "resume"


def test_where_the_kernel_does_not_tell_they_are_looked_at_now_and_then() -> None:
    node = Node(users=None).released()
    assert node.passes(AFTER_S - 1, running=None) is None
    assert node.passes(1, running=None) == "resume"


def test_after_they_were_taken_back_the_time_begins_anew() -> None:
    node = Node().released()
    node.passes(SETTLED_S + 1, running=None)
    node.users = 9
    assert node.passes(1, running=None) == "resume"
    assert node.passes(AFTER_S - 1) is None
    assert node.passes(1) == "release"


def test_who_has_them_taken_back_by_hand_is_followed() -> None:
    node = Node().released()
    assert node.passes(AFTER_S - 1) is None
    assert node.passes(2) == "release"


def test_the_use_count_is_read_or_not_known(tmp_path: Path) -> None:
    file = tmp_path / "refcnt"
    assert uses(file) is None
    file.write_text("12\n", encoding="ascii")
    assert uses(file) == 12
    file.write_text("many\n", encoding="ascii")
    assert uses(file) is None
