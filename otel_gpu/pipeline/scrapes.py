"""Scrapes: so many at a time, off the event loop, and what is asked for twice is made once."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from opentelemetry.sdk.metrics.export import MetricsData

from otel_gpu.pipeline.exposition import Format

T = TypeVar("T")

THREADS = 2
"""One collects while another writes or compresses; more would only contend for the interpreter."""

GZIP_LEVEL = 1
"""The fastest: at level 6 a page takes three times as long and becomes a fifth smaller."""


KEEP_S = 1.0
"""How long a page is given again while there is no new snapshot: what the agent tells of itself
moves on all the same."""


class BusyError(Exception):
    """As many scrapes as are allowed are under way."""


class _Page(NamedTuple):
    state: object
    made_s: float
    body: bytes


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

    A request that comes while a collection is under way gets that collection. `state` gives what
    a whole page is made of: while that is the same object, the page is given again.
    """

    def __init__(
        self,
        collect: Callable[[], MetricsData | None],
        render: Callable[[MetricsData, Format, frozenset[str]], bytes],
        limit: int,
        state: Callable[[], object] = object,
        keep_s: float = KEEP_S,
    ) -> None:
        self._collect = collect
        self._render = render
        self._limit = limit
        self._state = state
        self._keep_s = keep_s
        self._pages: dict[tuple[Format, bool], _Page] = {}
        self._under_way = 0
        self._flights = SingleFlight()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="otel-gpu-scrape")

    async def page(self, form: Format, only: frozenset[str], *, compress: bool) -> bytes | None:
        """Give a page, encoded; None while nothing can be collected yet. Raises BusyError."""
        state = self._state()
        kept = None if only else self._pages.get((form, compress))
        if kept and kept.state is state and time.monotonic() - kept.made_s < self._keep_s:
            return kept.body
        if self._under_way >= self._limit:
            raise BusyError
        self._under_way += 1
        try:
            data = await self.collection()
            if data is None:
                return None
            made_s = time.monotonic()
            key = (id(data), form, only, compress)  # `data` is held until the page is made
            body = await self._flights.do(
                key, lambda: self.run(lambda: self._body(data, form, only, compress=compress))
            )
            if not only:  # of those there may be any number
                self._pages[form, compress] = _Page(state, made_s, body)
            return body
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
        body = self._render(data, form, only)
        return gzip.compress(body, GZIP_LEVEL, mtime=0) if compress else body
