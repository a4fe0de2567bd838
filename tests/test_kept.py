"""What is asked for stays, and what is not is forgotten."""

from __future__ import annotations

from otel_gpu.kept import Kept


def test_what_a_turn_keeps_is_there_in_the_next() -> None:
    kept = Kept[str]()
    with kept.turn():
        assert kept.get("a") is None
        assert kept.keep("a", "made") == "made"
    with kept.turn():
        assert kept.get("a") == "made"
        kept.keep("a", "made")
    assert len(kept) == 1


def test_what_a_turn_did_without_is_forgotten_at_its_end() -> None:
    kept = Kept[str]()
    with kept.turn():
        kept.keep("a", "made")
    with kept.turn():
        pass
    assert kept.get("a") is None
    assert len(kept) == 0
