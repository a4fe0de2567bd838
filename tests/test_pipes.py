"""Which part of a new pipeline goes on with what of the old one."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricReader

from otel_gpu.config import Part, Settings
from otel_gpu.model import ConfigError
from otel_gpu.pipeline import Context
from otel_gpu.pipes import Pipe, Pipes, matched
from otel_gpu.provider import MeterProvider
from tests.running import free_port


def parts(*given: dict[str, Any]) -> tuple[Part, ...]:
    return Settings.model_validate({"pipeline": list(given)}).pipeline


def served(port: int, **options: Any) -> dict[str, Any]:
    return {"prometheus": {"address": f"127.0.0.1:{port}", **options}}


def pushed(endpoint: str, **options: Any) -> dict[str, Any]:
    return {"otlp": {"endpoint": endpoint, **options}}


def continued(before: tuple[Part, ...], after: tuple[Part, ...]) -> list[tuple[str | None, bool]]:
    """Give the place in the old pipeline that each part of the new one continues."""
    running = [Pipe(str(place), part, InMemoryMetricReader()) for place, part in enumerate(before)]
    return [(pipe.name if pipe else None, kept) for pipe, kept in matched(after, running)]


def test_parts_that_did_not_change_are_kept_in_any_order() -> None:
    before = parts(served(1), pushed("http://a"), {"console": {}})
    after = parts({"console": {}}, served(1), pushed("http://a"))
    assert continued(before, after) == [("2", True), ("0", True), ("1", True)]


def test_a_changed_part_follows_the_one_with_its_address_directory_or_file() -> None:
    before = parts(served(1), served(2), pushed("http://a", queue={"directory": "/q"}))
    after = parts(pushed("http://b", queue={"directory": "/q"}), served(2, created=True), served(1))
    assert continued(before, after) == [("2", False), ("1", False), ("0", True)]


def test_a_changed_part_follows_the_one_with_its_endpoint_before_any_of_its_kind() -> None:
    before = parts(pushed("http://a"), pushed("http://b"))
    after = parts(pushed("http://b", interval="1m"), pushed("http://c"))
    assert continued(before, after) == [("1", False), ("0", False)]


def test_a_part_of_a_kind_that_was_not_there_follows_nobody() -> None:
    assert continued(parts(served(1)), parts({"console": {}}, served(1))) == [
        (None, False),
        ("0", True),
    ]


@pytest.fixture
def pipes() -> Pipes:
    return Pipes(MeterProvider(shutdown_on_exit=False), Context())


def readers(pipes: Pipes) -> list[MetricReader]:
    return [pipe.reader for pipe in pipes.running]


def test_an_exchange_keeps_adds_and_ends(pipes: Pipes) -> None:
    first = free_port()
    pipes.commit(pipes.prepare(parts(served(first), {"console": {}})))
    kept, gone = readers(pipes)
    pipes.commit(pipes.prepare(parts(served(first), served(0))))
    assert readers(pipes)[0] is kept
    assert gone not in readers(pipes)
    assert list(pipes.readers) == ["prometheus/0", "prometheus/1"]
    assert pipes.ailment() is None
    pipes.commit(pipes.prepare(()))


def test_a_preparation_that_fails_leaves_all_as_it_was(pipes: Pipes) -> None:
    port, other = free_port(), free_port()
    pipes.commit(pipes.prepare(parts(served(port))))
    before = readers(pipes)
    with pytest.raises(ConfigError, match="the port is taken"):
        pipes.prepare(parts(served(port), served(other), served(0), served_elsewhere(port)))
    assert readers(pipes) == before
    assert pipes.ailment() is None
    pipes.commit(pipes.prepare(parts(served(port), served(other))))  # which was let go again
    pipes.commit(pipes.prepare(()))


def served_elsewhere(port: int) -> dict[str, Any]:
    """Serve on an address that includes one that is taken."""
    return {"prometheus": {"address": f":{port}"}}


def test_an_address_cannot_grow_while_the_agent_listens_on_a_part_of_it(pipes: Pipes) -> None:
    port = free_port()
    pipes.commit(pipes.prepare(parts(served(port))))
    with pytest.raises(ConfigError, match="take another port, or restart it"):
        pipes.prepare(parts(served_elsewhere(port)))
    pipes.commit(pipes.prepare(()))


def test_a_reader_whose_server_ended_is_ailing(pipes: Pipes) -> None:
    pipes.commit(pipes.prepare(parts(served(0))))
    pipes.running[0].reader.shutdown()
    assert pipes.ailment() == "prometheus/0: the thread that serves has ended"
