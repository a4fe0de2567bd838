"""Clients that take their time: half send headers byte by byte, half read a page drop by drop.

    python -m bench.slow PORT COUNT

Whoever is dropped comes back at once. Runs until its standard input ends.
"""

from __future__ import annotations

import asyncio
import sys

TICK_S = 1.0
ARRIVE_S = 5.0  # they come one by one, and so are dropped one by one
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: bench\r\n\r\n"


async def dripping(port: int) -> None:
    """Send a header that never ends."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /metrics HTTP/1.1\r\nX: ")
    while not writer.is_closing():
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(TICK_S)


async def sipping(port: int) -> None:
    """Ask for pages and read each at 1 KB/s."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    writer.write(REQUEST)
    while await reader.read(1024):  # noqa: ASYNC110 - to be slow is what it is for
        await asyncio.sleep(TICK_S)


async def again(kind: str, port: int, first_s: float) -> None:
    await asyncio.sleep(first_s)
    while True:
        try:
            await (dripping if kind == "dripping" else sipping)(port)
        except OSError:
            await asyncio.sleep(TICK_S)


async def crowd(port: int, count: int) -> None:
    kinds = ("dripping", "sipping")
    tasks = [
        asyncio.create_task(again(kind, port, ARRIVE_S * place / count))
        for kind in kinds
        for place in range(count)
    ]
    print("there", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()


if __name__ == "__main__":
    asyncio.run(crowd(int(sys.argv[1]), int(sys.argv[2])))
