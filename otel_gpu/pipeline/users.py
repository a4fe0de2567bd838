"""Basic authentication (RFC 7617) in front of an application; passwords are bcrypt's hashes."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

DUMMY = "$2b$10$CwTycUXWue0Thq9StjUM0uJ8Bz6Cg3bYJv2x1m5jVt3pFOQ0tVb9a"
"""Compared with where there is no such user: or the time would tell who is one."""

REMEMBERED = 100
"""Answers that are kept: a scraper comes every few seconds, and bcrypt takes 50 ms on purpose."""

LONGEST = 72
"""Bytes of a password that bcrypt looks at."""

Hashes = Mapping[str, str]


class Guard:
    """Lets in who has the password of a user; everybody, while there are no users.

    One comparison at a time, in a thread of its own: guessing costs the guesser.
    """

    def __init__(self, app: Any, hashes: Callable[[], Hashes]) -> None:
        self._app = app
        self._hashes = hashes
        self._answers: OrderedDict[bytes, bool] = OrderedDict()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="otel-gpu-users")

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """Pass a request on, or answer 401 (ASGI)."""
        hashes = self._hashes()
        if not hashes or await self._admits(hashes, credentials(scope["headers"])):
            await self._app(scope, receive, send)
            return
        body = b"name and password, please\n"
        headers = [
            (b"www-authenticate", b"Basic"),
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(body)).encode()),
        ]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def close(self) -> None:
        """Start no more comparisons."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _admits(self, hashes: Hashes, given: tuple[str, bytes] | None) -> bool:
        if given is None:
            return False
        user, password = given
        hashed = hashes.get(user, DUMMY)
        key = hashlib.sha256(b"\0".join((user.encode(), hashed.encode(), password))).digest()
        if key not in self._answers:
            loop = asyncio.get_running_loop()
            right = await loop.run_in_executor(self._thread, matches, password, hashed)
            self._answers[key] = right and user in hashes
            while len(self._answers) > REMEMBERED:
                self._answers.popitem(last=False)
        return self._answers.get(key, False)


def matches(password: bytes, hashed: str) -> bool:
    """Compare a password with a hash, which takes its time."""
    import bcrypt  # noqa: PLC0415 - only where there are users

    try:
        return bcrypt.checkpw(password[:LONGEST], hashed.encode())
    except ValueError:  # a password with a NUL in it, to older versions
        return False


def credentials(headers: Any) -> tuple[str, bytes] | None:
    """Read name and password from a request's headers; None where they have none."""
    for name, value in headers:
        scheme, _, encoded = value.partition(b" ")
        if name.lower() == b"authorization" and scheme.lower() == b"basic":
            try:
                user, colon, password = base64.b64decode(encoded, validate=True).partition(b":")
                return (user.decode(), password) if colon else None
            except (binascii.Error, UnicodeDecodeError):
                return None
    return None
