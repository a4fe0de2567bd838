"""YAML becomes plain values with lines, and every fault of the text is told at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.config.document import Document, parse, plain, read

SINGLE = "expected a single document in the stream but found another document"
QUOTES = 'inside { } and [ ] a reference stands in quotes: "${NAME}"'
TAG = "a tag (!name) is not supported; text that begins with ! stands in quotes"
DOLLARS = "write $${ for the characters themselves"


def words(document: Document) -> list[str]:
    return [str(fault) for fault in document.faults]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None),
        ("~", None),
        ("", None),
        ("true", True),
        ("False", False),
        ("on", "on"),
        ("yes", "yes"),
        ("0", 0),
        ("-12", -12),
        ("007", 7),
        ("1.44", 1.44),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1_000", "1_000"),
        ("0x10", "0x10"),
        ("12:30:45", "12:30:45"),
        ("0000:01:00.0", "0000:01:00.0"),
        ("2026-01-01", "2026-01-01"),
        (".nan", ".nan"),
        ("1e999", "1e999"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_plain_words_mean_what_they_mean_in_yaml_1_2(text: str, value: object) -> None:
    assert plain(text) == value
    assert type(plain(text)) is type(value)


def test_every_value_knows_its_line() -> None:
    document = parse("a:\n  b: 1\n  c:\n    - x\n    - {d: 2}\n", "f")
    assert document.values == {"a": {"b": 1, "c": ["x", {"d": 2}]}}
    assert document.lines[("a", "b")] == 2
    assert document.lines[("a", "c", 0)] == 4
    assert document.lines[("a", "c", 1, "d")] == 5


def test_a_value_on_the_next_line_is_found_at_its_key() -> None:
    document = parse("a:\n\n  ${NOPE}\n", "f", {})
    assert words(document)[0].startswith("f:1: a: ${NOPE} is not set")


def test_quotes_make_text() -> None:
    assert parse("[\"1\", 'null', 1, null]", "f").values == ["1", "null", 1, None]


def test_a_reference_without_quotes_is_read_by_what_it_holds() -> None:
    document = parse("{a: \"${N}\", b: '${N}'}\n", "f", {"N": "5"})
    assert document.values == {"a": "5", "b": "5"}
    assert parse("a: ${N}\n", "f", {"N": "5"}).values == {"a": 5}


def test_a_value_from_the_environment_is_never_more_than_one_value() -> None:
    assert parse("a: ${N}\n", "f", {"N": "{b: c}"}).values == {"a": "{b: c}"}


def test_without_an_environment_nothing_is_expanded() -> None:
    assert parse("a: ${N}", "f").values == {"a": "${N}"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: b: c", "f:1:5: is not YAML: mapping values are not allowed here"),
        ("a: 1\nb: [1, 2", "f:2:9: is not YAML: expected ',' or ']', but got '<stream end>'"),
        ("a:\n\t- b", "f:2:1: is not YAML: found character '\\t' that cannot start any token"),
        (
            "--- a\n--- b",
            f"f:2:1: is not YAML: {SINGLE}",
        ),
        (
            "a: &x 1\nb: *x",
            "f:2:4: is not YAML: an alias (*name) is not supported; write the value out",
        ),
        ("a: !!int 1", f"f:1:4: is not YAML: {TAG}"),
        ("a: ! 1", f"f:1:4: is not YAML: {TAG}"),
        ("a: !hunter2", f"f:1:4: is not YAML: {TAG}"),
        ("a: !hunter2!a", f"f:1:4: is not YAML: {TAG}"),
        (
            "a: {b: ${N}}",
            "f:1:9: is not YAML: expected ',' or '}', but got '{'; " + QUOTES,
        ),
        ("a: 1\na: 2", "f:2: a: is set twice; first in line 1"),
        ("a: {b: 1, c: {d: 1, d: 2}}", "f:1: a.c.d: is set twice; first in line 1"),
        ("a:\n  [b]: 1", "f:2: a: a key must be a word"),
        ("a:\n  '': 1", "f:2: a: a key must be a word"),
        ('a: "\\ud800"', "f:1: a: is not Unicode text"),
        ('"\\ud800": 1', "f:1: a key must be a word"),
        (
            "a: ${X",
            "f:1: a: ${ does not begin ${NAME} or ${NAME:-default}; " + DOLLARS,
        ),
    ],
)
def test_a_fault_of_the_text_says_where_and_what(text: str, fault: str) -> None:
    assert words(parse(text, "f", {})) == [fault]


def test_text_that_yaml_cannot_hold_is_refused() -> None:
    (fault,) = words(parse("a: \x00", "f"))
    assert fault.startswith("f: is not YAML: unacceptable character #x0000")


def test_nesting_without_end_is_refused() -> None:
    assert words(parse("[" * 600, "f")) == ["f: is nested too deeply"]


def test_a_file_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    assert words(read(path, {})) == [
        f"{path}: there is no such file; give another --config, or none for the defaults"
    ]


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    assert words(read(tmp_path, {})) == [f"{tmp_path}: cannot be read: Is a directory"]
    assert words(read(Path("a\x00b"), {})) == ["a b: cannot be read: embedded null byte"]


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_bytes(b"a: \xff")
    assert words(read(path, {})) == [f"{path}: is not UTF-8 text (byte 3)"]


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1")
    assert read(path, {}).values == {"a": 1}


@given(st.text(alphabet=st.sampled_from(list("ab:-[]{},&*!|>'\"%@#?\n\t $~0.1\\u")), max_size=60))
def test_any_text_gives_a_document(text: str) -> None:
    document = parse(text, "f", {"a": "1"})
    assert all(fault.where.startswith("f") and fault.message for fault in document.faults)
