"""${NAME} in the file stands for what the environment says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.config.references import expand, literal

ENVIRON = {"HOST": "collector", "PORT": "4318", "EMPTY": "", "NESTED": "${HOST}"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("http://${HOST}:${PORT}", "http://collector:4318"),
        ("${NOPE:-fall back}", "fall back"),
        ("${NOPE:-}", ""),
        ("${EMPTY}", ""),
        ("${EMPTY:-full}", "full"),
        ("${HOST:-other}", "collector"),
        ("$$", "$"),
        ("$${HOST}", "${HOST}"),
        ("a$b $ c", "a$b $ c"),
        ("${NESTED}", "${HOST}"),
    ],
)
def test_references_are_replaced(text: str, value: str) -> None:
    assert expand(text, ENVIRON) == (value, [])


def test_a_variable_that_is_not_set_is_named() -> None:
    assert expand("${TOKEN}", {})[1] == [
        "${TOKEN} is not set in the environment; set TOKEN, or write ${TOKEN:-...}"
    ]


@pytest.mark.parametrize("text", ["${", "${}", "${1X}", "${A-B}", "${A:B}", "${A"])
def test_what_only_looks_like_a_reference_is_refused(text: str) -> None:
    assert expand(text, {"A": "a"})[1] == [
        "${ does not begin ${NAME} or ${NAME:-default}; write $${ for the characters themselves"
    ]


@given(st.text())
def test_text_with_every_dollar_doubled_comes_out_as_it_was(text: str) -> None:
    assert expand(text.replace("$", "$$"), {}) == (text, [])


@given(st.text(alphabet="${}:-aX ", max_size=12))
def test_what_is_written_literally_is_read_as_it_was(text: str) -> None:
    assert expand(literal(text), {"a": "expanded", "X": "expanded"}) == (text, [])


def test_a_dollar_that_begins_no_reference_stands_alone() -> None:
    assert literal("$5 or a$b") == "$5 or a$b"
