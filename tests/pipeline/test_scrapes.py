"""Scrapes share their work, keep to their limit, and leave the event loop free."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.metrics.export import MetricsData

from otel_gpu.pipeline.exposition import Format
from otel_gpu.pipeline.scrapes import BusyError, Scrapes, SingleFlight

ALL: frozenset[str] = frozenset()


class Work:
    """A collection and a rendering that wait until the test lets them go on."""

    def __init__(self, limit: int, keep_s: float = 60.0) -> None:
        self.state: object = object()
        self.collections = 0
        self.began = threading.Event()
        self.pages: list[Format] = []
        self.release = threading.Event()
        self.scrapes = Scrapes(self.collect, self.render, limit, lambda: self.state, keep_s)

    def collect(self) -> MetricsData:
        self.collections += 1
        self.began.set()
        assert self.release.wait(10)
        return MetricsData([])

    def render(self, _data: MetricsData, form: Format, only: frozenset[str]) -> bytes:
        self.pages.append(form)
        return f"{form.name} {','.join(sorted(only))}".encode()

    def ask(
        self,
        form: Format = Format.TEXT,
        only: frozenset[str] = ALL,
        *,
        compress: bool = False,
    ) -> asyncio.Task[bytes | None]:
        return asyncio.ensure_future(self.scrapes.page(form, only, compress=compress))


@pytest.fixture
def work() -> Iterator[Work]:
    work = Work(limit=4)
    yield work
    work.release.set()
    work.scrapes.close()


async def turns() -> None:
    """Let every task run that can."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_scrapes_at_the_same_time_share_one_collection_and_one_page_a_notation(work: Work) -> None:
    async def scrape() -> list[bytes | None]:
        asked = [work.ask(), work.ask(), work.ask(Format.OPENMETRICS), work.ask(compress=True)]
        await turns()
        work.release.set()
        return await asyncio.gather(*asked)

    first, second, third, fourth = asyncio.run(scrape())

    assert (first, second, third) == (b"TEXT ", b"TEXT ", b"OPENMETRICS ")
    assert fourth
    assert gzip.decompress(fourth) == b"TEXT "
    assert work.collections == 1
    assert sorted(form.name for form in work.pages) == ["OPENMETRICS", "TEXT", "TEXT"]


def made(work: Work, *between: object, only: frozenset[str] = ALL) -> int:
    """Scrape, and once more in each of these states; give how many pages were made."""
    work.release.set()

    async def scrape() -> None:
        await work.ask(only=only)
        for work.state in between:
            await work.ask(only=only)

    asyncio.run(scrape())
    assert work.collections == len(work.pages)
    return len(work.pages)


def test_a_page_is_given_again_until_there_is_a_new_snapshot(work: Work) -> None:
    same, other = work.state, object()

    assert made(work, same, same, other, other) == 2


def test_a_page_is_not_given_again_for_ever() -> None:
    work = Work(limit=4, keep_s=0.0)

    assert made(work, work.state, work.state) == 3
    work.scrapes.close()


def test_pages_of_a_few_names_are_not_kept(work: Work) -> None:
    assert made(work, work.state, only=frozenset({"hw_power_watts"})) == 2


def test_each_notation_is_kept_by_itself(work: Work) -> None:
    work.release.set()

    async def scrape() -> list[bytes | None]:
        return [await work.ask(form) for form in (Format.TEXT, Format.OPENMETRICS, Format.TEXT)]

    assert asyncio.run(scrape()) == [b"TEXT ", b"OPENMETRICS ", b"TEXT "]
    assert work.collections == 2


def test_one_scrape_too_many_is_refused_and_the_next_is_served(work: Work) -> None:
    async def scrape() -> None:
        asked = [work.ask() for _ in range(4)]
        await turns()
        with pytest.raises(BusyError):
            await work.ask()
        work.release.set()
        await asyncio.gather(*asked)
        assert await work.ask() == b"TEXT "

    asyncio.run(scrape())


def test_the_loop_goes_on_while_a_collection_takes_its_time(work: Work) -> None:
    async def scrape() -> bytes | None:
        asked = work.ask()
        assert await asyncio.to_thread(work.began.wait, 10)
        assert not asked.done()
        work.release.set()  # which nobody could do if the loop waited for the collection
        return await asked

    assert asyncio.run(scrape()) == b"TEXT "


def test_a_client_that_goes_away_takes_nothing_from_the_others(work: Work) -> None:
    async def scrape() -> bytes | None:
        leaving, staying = work.ask(), work.ask()
        await turns()
        leaving.cancel()
        await turns()
        work.release.set()
        return await staying

    assert asyncio.run(scrape()) == b"TEXT "


def test_what_one_making_raises_reaches_everybody_who_asked_and_nobody_later() -> None:
    flights = SingleFlight()
    makings = 0

    async def make() -> int:
        nonlocal makings
        makings += 1
        await asyncio.sleep(0)
        if makings == 1:
            raise OSError("no")
        return makings

    async def ask() -> list[object]:
        first = await asyncio.gather(
            flights.do("x", make), flights.do("x", make), return_exceptions=True
        )
        return [*map(repr, first), await flights.do("x", make)]

    assert asyncio.run(ask()) == ["OSError('no')", "OSError('no')", 2]
