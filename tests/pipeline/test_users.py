"""Who has a user's password comes in, and nobody else."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

import bcrypt
import pytest

from otel_gpu.pipeline.users import REMEMBERED, Guard, credentials

Headers = list[tuple[bytes, bytes]]


def hashed(password: str) -> str:
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()


USERS = {"alice": hashed("s3cret"), "bob": hashed("s3cret:2")}


def basic(text: str | bytes, scheme: str = "Basic") -> Headers:
    raw = text.encode() if isinstance(text, str) else text
    return [(b"Authorization", scheme.encode() + b" " + base64.b64encode(raw))]


async def welcome(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})


def statuses(guard: Guard, *requests: Headers) -> list[int]:
    """Give the status of each request, one after another."""

    async def all_of_them() -> list[int]:
        sent: list[Mapping[str, Any]] = []

        async def send(message: Mapping[str, Any]) -> None:
            sent.append(message)

        for headers in requests:
            await guard({"headers": headers}, None, send)
        return [message["status"] for message in sent if "status" in message]

    try:
        return asyncio.run(all_of_them())
    finally:
        guard.close()


def test_without_users_everybody_comes_in() -> None:
    assert statuses(Guard(welcome, dict), []) == [200]


@pytest.mark.parametrize("given", ["alice:s3cret", "bob:s3cret:2"])
@pytest.mark.parametrize("scheme", ["Basic", "basic"])
def test_a_user_with_the_right_password_comes_in(given: str, scheme: str) -> None:
    assert statuses(Guard(welcome, lambda: USERS), basic(given, scheme)) == [200]


@pytest.mark.parametrize(
    "headers",
    [
        [],
        basic("alice:wrong"),
        basic("alice:"),
        basic("carol:s3cret"),
        basic("alice"),
        basic(b"\xff\xfe:s3cret"),
        basic("alice:\0"),
        basic("alice:s3cret", "Bearer"),
        [(b"authorization", b"Basic !!!")],
    ],
)
def test_everybody_else_does_not(headers: Headers) -> None:
    assert statuses(Guard(welcome, lambda: USERS), headers, headers) == [401, 401]


def test_a_password_that_was_changed_counts_at_once() -> None:
    users = dict(USERS)
    guard = Guard(welcome, lambda: users)

    async def change(_scope: Any, _receive: Any, send: Any) -> None:
        users["alice"] = hashed("new")
        await welcome(None, None, send)

    guard._app = change
    assert statuses(guard, *[basic("alice:s3cret")] * 2) == [200, 401]


def test_answers_are_remembered_but_not_without_end() -> None:
    guard = Guard(welcome, lambda: USERS)
    guesses = [basic(f"alice:{number}") for number in range(REMEMBERED + 20)]

    assert set(statuses(guard, *guesses)) == {401}

    assert len(guard._answers) == REMEMBERED


def test_credentials_are_found_whatever_the_case_of_the_header() -> None:
    assert credentials([(b"AUTHORIZATION", basic("a:b")[0][1])]) == ("a", b"b")
