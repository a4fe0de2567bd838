"""What a target is given to know us by is kept out of what is said about it."""

from __future__ import annotations

import base64

import pytest

from otel_gpu.pipeline.credentials import Credentials

BASIC = base64.b64encode(b"node:pass-word").decode()


@pytest.mark.parametrize(
    ("endpoint", "headers", "secret"),
    [
        ("http://h", {"authorization": "Bearer abc.def"}, "abc.def"),
        ("http://h", {"authorization": f"Basic {BASIC}"}, BASIC),
        ("http://h", {"authorization": f"Basic {BASIC}"}, "pass-word"),
        ("http://h", {"x-key": "two words"}, "two words"),
        ("http://node:pass%20word@h", {}, "pass%20word"),
        ("http://node:pass%20word@h", {}, "pass word"),
        ("http://node:pass-word@h", {}, BASIC),
        ("http://h/?key=abc%2Bdef", {}, "abc+def"),
        ("http://h/?key=abc%2Bdef", {}, "abc%2Bdef"),
        ("http://h/?abcdef", {}, "abcdef"),
    ],
)
def test_each_form_of_a_secret_is_starred_out(
    endpoint: str, headers: dict[str, str], secret: str
) -> None:
    hidden = Credentials(endpoint, headers).hidden

    assert hidden(f"no {secret} here") == f"no {'*' * len(secret)} here"
    assert hidden(f"no {secret} here".encode()) == f"no {'*' * len(secret)} here".encode()


def test_the_longest_goes_first_and_what_is_short_stays() -> None:
    hidden = Credentials("http://h", {"a": "token-1", "b": "token-1-and-more", "c": "1"}).hidden

    assert hidden("token-1-and-more 1") == "*" * 16 + " 1"


def test_without_secrets_nothing_changes() -> None:
    assert Credentials().hidden("as it was") == "as it was"
    assert Credentials().hidden(b"as it was") == b"as it was"
    assert (
        Credentials("http://h", {"authorization": "Basic no base64"}).hidden("as was") == "as was"
    )
