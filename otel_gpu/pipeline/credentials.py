"""What a target is given to know us by, kept out of everything that is said about it.

A server that refuses a token often repeats it, and so do libraries that refuse a header.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

SHORTEST = 6
"""Characters of what is hidden: less would make a text unreadable and hide nothing."""

Said = TypeVar("Said", str, bytes)


class Credentials:
    """The values of a target's headers, and what stands before @ and after ? in its endpoint."""

    def __init__(self, endpoint: str = "", headers: Mapping[str, str] | None = None) -> None:
        found = {*_of_url(endpoint), *_of_headers(headers or {})}
        secrets = sorted((one for one in found if len(one) >= SHORTEST), key=len, reverse=True)
        words = "|".join(map(re.escape, secrets))
        self._text = re.compile(words) if words else None
        self._bytes = re.compile(words.encode()) if words else None

    def hidden(self, said: Said) -> Said:
        """Give a text with asterisks in the place of each: of its length, or a message would tear.

        To be used before a text is cut, because half a token is still told.
        """
        if isinstance(said, bytes):
            return said if self._bytes is None else self._bytes.sub(_asterisks, said)
        return said if self._text is None else self._text.sub(_stars, said)


def _stars(match: re.Match[str]) -> str:
    return "*" * len(match[0])


def _asterisks(match: re.Match[bytes]) -> bytes:
    return b"*" * len(match[0])


def _of_headers(headers: Mapping[str, str]) -> Iterator[str]:
    for value in headers.values():
        yield value.strip()
        yield from (words := value.split())  # without the scheme, such as Bearer
        if len(words) == 2 and words[0].lower() == "basic":
            yield from _of_basic(words[1])


def _of_basic(encoded: str) -> Iterator[str]:
    try:
        yield base64.b64decode(encoded, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return


def _of_url(endpoint: str) -> Iterator[str]:
    parts = urlsplit(endpoint)
    if parts.password is not None:
        user, password = unquote(parts.username or ""), unquote(parts.password)
        yield from (parts.password, password)
        yield base64.b64encode(f"{user}:{password}".encode()).decode()
    yield from (value for _, value in parse_qsl(parts.query))
    yield from (each.partition("=")[2] or each for each in parts.query.split("&"))
