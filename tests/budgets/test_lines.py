"""Lines of the log: a burst of each cause a minute, and once how many more there were."""

import logging
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.budgets.lines import BURST, CAUSES, LineBudget


class Written(logging.Handler):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        self.records.append(record)


class Log:
    """A logger with a budget and a clock that the test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.handler = Written()
        self.budget = LineBudget(self.handler, clock=lambda: self.now_s)
        self.handler.addFilter(self.budget)

    def log(
        self, text: object, *args: object, level: int = logging.WARNING, name: str = "a"
    ) -> None:
        self.handler.handle(logging.LogRecord(name, level, __file__, 1, text, args, None))

    @property
    def lines(self) -> list[str]:
        return self.handler.lines


@pytest.fixture
def log() -> Iterator[Log]:
    made = Log()
    yield made
    made.handler.close()


def test_a_burst_is_written_and_what_is_beyond_it_is_counted(log: Log) -> None:
    for place in range(BURST + 3):
        log.log("GPU %d is lost", place)
    assert log.lines == [f"GPU {place} is lost" for place in range(BURST)]
    assert log.budget.suppressed == 3


def test_after_the_minute_the_next_line_of_the_cause_comes_after_how_many_were_suppressed(
    log: Log,
) -> None:
    for place in range(BURST + 123):
        log.log("GPU %d is lost", place)
    log.now_s = 60.0
    log.log("GPU %d is lost", 0)
    assert log.lines[BURST:] == [
        "... 123 more lines like this within a minute: GPU 5 is lost",
        "GPU 0 is lost",
    ]


def test_so_does_the_next_line_of_any_cause_with_the_name_and_level_of_the_suppressed(
    log: Log,
) -> None:
    for _ in range(BURST + 2):
        log.log("lost", level=logging.ERROR)
    log.now_s = 3600.0
    log.log("found", name="b")
    told, found = log.handler.records[BURST:]
    assert told.getMessage() == "... 2 more lines like this within a minute: lost"
    assert (told.name, told.levelno, told.levelname) == ("a", logging.ERROR, "ERROR")
    assert found.getMessage() == "found"


def test_it_is_told_once(log: Log) -> None:
    for _ in range(BURST + 2):
        log.log("lost")
    for minute in range(1, 4):
        log.now_s = 60.0 * minute
        log.log("lost")
    assert len([line for line in log.lines if "more lines" in line]) == 1


def test_nothing_is_told_where_nothing_was_suppressed(log: Log) -> None:
    for _ in range(BURST):
        log.log("lost")
    log.now_s = 60.0
    log.log("lost")
    assert log.lines == ["lost"] * (BURST + 1)


@pytest.mark.parametrize(
    "other",
    [{"name": "b"}, {"level": logging.INFO}, {"text": "another"}],
    ids=["logger", "level", "text"],
)
def test_another_cause_has_a_burst_of_its_own(log: Log, other: dict[str, object]) -> None:
    for _ in range(BURST + 1):
        log.log("lost")
    log.log(**({"text": "lost"} | other))  # type: ignore[arg-type]
    assert len(log.lines) == BURST + 1


@pytest.mark.parametrize("text", ["%s", "%s: %s", "%r", "%(gpu)s"])
def test_where_the_text_is_nothing_but_placeholders_the_line_is_the_cause(
    log: Log, text: str
) -> None:
    for place in range(BURST + 1):
        args = ({"gpu": place},) if "(" in text else (place,) * text.count("%")
        log.log(text, *args)
    assert len(log.lines) == BURST + 1


def test_a_text_that_is_no_string_has_its_type_as_cause(log: Log) -> None:
    for place in range(BURST + 1):
        log.log(OSError(place))
    assert len(log.lines) == BURST


def test_a_critical_line_is_never_suppressed(log: Log) -> None:
    for _ in range(BURST + 1):
        log.log("the end", level=logging.CRITICAL)
    assert len(log.lines) == BURST + 1


def test_an_argument_that_cannot_be_written_harms_nobody_who_logs(log: Log) -> None:
    class Unwritable:
        def __str__(self) -> str:
            raise ValueError("no words")

    assert log.budget.filter(
        logging.LogRecord("a", logging.INFO, __file__, 1, "%s", (Unwritable(),), None)
    )


def test_causes_without_number_share_a_burst_for_each_level_and_nothing_grows(log: Log) -> None:
    for place in range(10 * CAUSES):
        log.log(f"cause {place}", level=logging.WARNING)
    assert len(log.lines) == CAUSES + BURST
    assert len(log.budget) == CAUSES + 1
    log.log("one that matters", level=logging.ERROR)
    assert log.lines[-1] == "one that matters"
    log.now_s = 60.0
    log.log("later")
    assert log.lines[-2:] == [f"... {9 * CAUSES - BURST} more lines of other causes", "later"]
    assert len(log.budget) == 1


def test_threads_that_log_at_once_write_no_more_than_the_burst(log: Log) -> None:
    def many() -> None:
        for _ in range(200):
            log.log("lost")

    threads = [threading.Thread(target=many) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(log.lines) == BURST
    assert log.budget.suppressed == 8 * 200 - BURST


@given(
    st.lists(st.tuples(st.floats(0, 40), st.sampled_from(["cold", "warm", "hot"])), max_size=200)
)
def test_every_line_is_written_or_counted_and_told_of(lines: list[tuple[float, str]]) -> None:
    log = Log()
    for pause_s, text in lines:
        log.now_s += pause_s
        log.log(text)
    log.now_s += 60.0
    log.log("the end")
    told = [line for line in log.lines if line.startswith("...")]
    assert sum(int(line.split()[1]) for line in told) == log.budget.suppressed
    assert len(log.lines) - len(told) - 1 + log.budget.suppressed == len(lines)
