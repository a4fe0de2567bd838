"""Scrapes: so many at a time, off the event loop, and what is asked for twice is made once."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from opentelemetry.sdk.metrics.export import MetricsData

from otel_gpu.pipeline.exposition import Format

T = TypeVar("T")

THREADS = 2
"""One collects while another writes or compresses; more would only contend for the interpreter."""

GZIP_LEVEL = 1
"""The fastest: at level 6 a page takes three times as long and becomes a fifth smaller."""


class BusyError(Exception):
    """As many scrapes as are allowed are under way."""


class SingleFlight:
    """Lets everybody who asks for the same thing, while it is being made, share one making."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, asyncio.Future[Any]] = {}

    async def do(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """Give what `make` gives, or what a `make` of that key under way is about to give."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = asyncio.ensure_future(make())
            flight.add_done_callback(lambda _: self._flights.pop(key))
        # One client that goes away does not take the page from the others.
        result: T = await asyncio.shield(flight)
        return result


class Scrapes:
    """Makes pages for scrapers; `collect` and `render` are called in threads.

    A request that comes while a collection is under way gets that collection.
    """

    def __init__(
        self,
        collect: Callable[[], MetricsData | None],
        render: Callable[[MetricsData, Format, frozenset[str]], str],
        limit: int,
    ) -> None:
        self._collect = collect
        self._render = render
        self._limit = limit
        self._under_way = 0
        self._flights = SingleFlight()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="otel-gpu-scrape")

    async def page(self, form: Format, only: frozenset[str], *, compress: bool) -> bytes | None:
        """Give a page, encoded; None while nothing can be collected yet. Raises BusyError."""
        if self._under_way >= self._limit:
            raise BusyError
        self._under_way += 1
        try:
            data = await self.collection()
            if data is None:
                return None
            key = (id(data), form, only, compress)  # `data` is held until the page is made
            return await self._flights.do(
                key, lambda: self.run(lambda: self._body(data, form, only, compress=compress))
            )
        finally:
            self._under_way -= 1

    async def collection(self) -> MetricsData | None:
        """Give the collection that is under way, or begin one; None while there can be none."""
        return await self._flights.do("collection", lambda: self.run(self._collect))

    async def run(self, work: Callable[[], T]) -> T:
        """Do blocking work in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Start no more work."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _body(
        self, data: MetricsData, form: Format, only: frozenset[str], *, compress: bool
    ) -> bytes:
        body = self._render(data, form, only).encode()
        return gzip.compress(body, GZIP_LEVEL, mtime=0) if compress else body
