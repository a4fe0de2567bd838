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

    def __init__(self, limit: int) -> None:
        self.collections = 0
        self.began = threading.Event()
        self.pages: list[Format] = []
        self.release = threading.Event()
        self.scrapes = Scrapes(self.collect, self.render, limit)

    def collect(self) -> MetricsData:
        self.collections += 1
        self.began.set()
        assert self.release.wait(10)
        return MetricsData([])

    def render(self, _data: MetricsData, form: Format, only: frozenset[str]) -> str:
        self.pages.append(form)
        return f"{form.name} {','.join(sorted(only))}"

    def ask(
        self, form: Format = Format.TEXT, *, compress: bool = False
    ) -> asyncio.Task[bytes | None]:
        return asyncio.ensure_future(self.scrapes.page(form, ALL, compress=compress))


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


def test_a_scrape_after_another_has_a_collection_of_its_own(work: Work) -> None:
    work.release.set()

    async def scrape() -> None:
        await work.ask()
        await work.ask()

    asyncio.run(scrape())

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
