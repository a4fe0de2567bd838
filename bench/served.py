"""An agent, and beside it a constant page of the same size from the same kind of server.

    python -m bench.served OTLP_ENDPOINT

Both are in one process, so that they share its load. Prints the two ports, and serves until its
standard input ends.
"""

from __future__ import annotations

import sys
import time
import urllib.request
from typing import Any

from otel_gpu.agent import Agent
from otel_gpu.config import load
from otel_gpu.pipeline.app import PART
from otel_gpu.pipeline.server import Server, listen

KEY = "bench"


class Constant:
    """Answers everything with the same bytes."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __call__(self, _scope: Any, _receive: Any, send: Any) -> None:
        headers = [(b"content-length", str(len(self._body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        body = memoryview(self._body)
        while len(body) > PART:
            await send({"type": "http.response.body", "body": body[:PART], "more_body": True})
            body = body[PART:]
        await send({"type": "http.response.body", "body": body})


def main() -> None:
    listener = listen("127.0.0.1:0", KEY)
    port = listener.getsockname()[1]
    listener.close()
    parts = [
        {"prometheus": {"address": f"127.0.0.1:{port}"}},
        {"otlp": {"endpoint": sys.argv[1], "interval": "1s"}},
    ]
    given = {"backend": "simulated:h200x8", "metrics.profile": "full", "pipeline": parts}
    agent = Agent(load(None, {}, given).settings, {})
    agent.start()
    agent.wait_for_sweep(10.0)
    time.sleep(2.0)  # rates need two sweeps
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response:
        page = response.read()
    constant = Server(Constant(page), listen("127.0.0.1:0", KEY))
    constant.begin()
    print(port, constant.port, len(page), flush=True)
    sys.stdin.read()
    agent.stop()
    constant.stop(2.0)


if __name__ == "__main__":
    main()
