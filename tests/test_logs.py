"""The log: a line is one line, whatever others wrote into it, and no longer than it may be."""

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu import logs
from otel_gpu.budgets.lines import BURST
from otel_gpu.logs import LONGEST, Format, JsonFormatter, TextFormatter, configure

log = logging.getLogger("otel_gpu.tests")
EVIL = "a\n2026-01-01 00:00:00,000 ERROR   forged\r\x1b[2J\x7f\x85\u2028\u202e\ud800"


@contextmanager
def configured(form: Format, level: str = "info") -> Iterator[io.StringIO]:
    """Send the log to a stream for a while."""
    root = logging.getLogger()
    before, before_level = root.handlers[:], root.level
    root.handlers[:] = []
    stream = io.StringIO()
    try:
        configure(level, form, stream)
        yield stream
    finally:
        root.handlers[:] = before
        root.setLevel(before_level)


def record(text: str, *, error: Exception | None = None) -> logging.LogRecord:
    info = (type(error), error, None) if error else None
    return logging.LogRecord("otel_gpu", logging.ERROR, __file__, 1, "%s", (text,), info)


def test_text_has_the_time_the_level_and_the_message() -> None:
    with configured("text") as stream:
        log.warning("GPU %d is lost", 3)
    day, time, level, message = stream.getvalue().split(None, 3)
    assert (level, message) == ("WARNING", "GPU 3 is lost\n")
    assert day.count("-") == time.count(":") == 2


@pytest.mark.parametrize("form", ["json", "auto"])
def test_json_has_them_too_and_is_what_a_stream_gets_that_is_no_terminal(form: Format) -> None:
    with configured(form) as stream:
        log.warning("GPU %d is lost", 3)
    line = json.loads(stream.getvalue())
    assert line.pop("time").endswith("+00:00")
    assert line == {"level": "warning", "logger": "otel_gpu.tests", "message": "GPU 3 is lost"}


def test_a_level_that_is_not_asked_for_is_not_written() -> None:
    with configured("text", "error") as stream:
        log.warning("lost")
    assert stream.getvalue() == ""


def test_what_others_wrote_begins_no_line_and_moves_no_cursor() -> None:
    line = TextFormatter().format(record(EVIL))
    assert line.endswith(
        r"a\n2026-01-01 00:00:00,000 ERROR   forged\r\x1b[2J\x7f\x85\u2028\u202e\ud800"
    )
    assert line.isprintable()


def test_in_json_neither_and_the_message_is_what_it_was() -> None:
    line = JsonFormatter().format(record(EVIL))
    assert line.isprintable()
    assert json.loads(line)["message"] == EVIL


def test_a_traceback_is_indented_so_that_none_of_its_lines_looks_like_a_records() -> None:
    first, *rest = TextFormatter().format(record("lost", error=ValueError(EVIL))).split("\n")
    assert first.endswith("ERROR   lost")
    assert rest
    assert all(line.startswith("    ") and line.isprintable() for line in rest)


def test_in_json_a_traceback_is_a_member() -> None:
    line = json.loads(JsonFormatter().format(record("lost", error=ValueError("why"))))
    assert line["exception"] == "ValueError: why"


def test_of_a_long_traceback_the_end_is_kept_where_it_says_what_was_raised() -> None:
    error = ValueError("x" * 3 * LONGEST + "the cause")
    text = TextFormatter().format(record("lost", error=error))
    assert text.split("\n")[1].startswith("     ... [cut] ...")
    assert text.endswith("the cause")


@given(st.text(max_size=200), st.integers(1, 3 * LONGEST))
def test_no_message_is_longer_than_it_may_be_and_each_is_one_line(unit: str, length: int) -> None:
    text = (unit * (length // max(1, len(unit)) + 1))[:length]
    line = TextFormatter().format(record(text))
    assert len(line.encode()) <= LONGEST + 40
    assert len(line.splitlines()) == 1
    made = JsonFormatter().format(record(text))
    assert len(made.encode()) <= LONGEST + 120
    assert len(made.splitlines()) == 1
    message = json.loads(made)["message"]
    assert message == text or (message.endswith("[cut] ... ") and text.startswith(message[:-15]))


def test_lines_of_one_cause_are_bounded_and_counted() -> None:
    with configured("text") as stream:
        before = logs.suppressed()
        for place in range(BURST + 4):
            log.warning("GPU %d is lost", place)
        assert logs.suppressed() - before == 4
    assert stream.getvalue().count("\n") == BURST


def test_to_configure_the_log_again_forgets_no_count() -> None:
    with configured("text"):
        for _ in range(BURST + 4):
            log.warning("lost")
        configure("info", "text", io.StringIO())
        assert logs.suppressed() == 4


def test_where_the_log_is_somebody_elses_nothing_is_suppressed() -> None:
    assert logs.suppressed() == 0
