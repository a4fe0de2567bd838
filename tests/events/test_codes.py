"""The table of Xid codes: whole, in good order, and classed as NVIDIA's advice would have it."""

import logging
import re

import pytest

from otel_gpu.events.codes import ACTIONS, CODES, XidClass, explained, numbers, table
from otel_gpu.events.record import Severity

CLASSES = {
    # what the driver's documentation advises to do at once, written down here by hand
    XidClass.NODE: "54,79,151",
    XidClass.RESET: "46,48,62,64,95,109,110,119,120,136,140,143,155,156,158,167,169,171-173,175",
    XidClass.LINK: "74,121,137,144-150,159,166,170",
    XidClass.APPLICATION: "8,11,13,25,31,32,39-41,43,45,60,68-72,75-78,80,82-86,88,89,94,96-105,"
    "126-135,139,142",
    XidClass.INFO: "37,38,44,63,66,67,92,93,106,107,141,152-154,157,160-165,168,176",
}

CASES = [(code, reach) for reach, codes in CLASSES.items() for code in numbers(codes)]


@pytest.mark.parametrize(("code", "reach"), CASES)
def test_a_code_is_in_the_class_of_the_advice(code: int, reach: XidClass) -> None:
    assert explained(code).reach is reach


def test_the_severity_follows_the_class() -> None:
    assert {(xid.reach, xid.severity) for xid in CODES.values()} == {
        (XidClass.NODE, Severity.FATAL),
        (XidClass.RESET, Severity.ERROR),
        (XidClass.LINK, Severity.ERROR),
        (XidClass.APPLICATION, Severity.WARN),
        (XidClass.INFO, Severity.INFO),
    }


@pytest.mark.parametrize("xid", CODES.values(), ids=lambda xid: str(xid.code))
def test_what_is_said_of_a_code_is_short_and_in_sentences(xid: object) -> None:
    name, meaning, action = (str(getattr(xid, key)) for key in ("name", "meaning", "action"))
    assert 3 < len(name) < 40
    assert not name.endswith(".")
    for text in (meaning, action):
        assert re.fullmatch(r"[A-Z].*\.", text)
        assert text == " ".join(text.split())
        assert len(text) < 240


def test_codes_that_a_gpu_of_today_can_report_are_all_known() -> None:
    assert set(range(1, 174)) - set(CODES) == set()


def test_no_advice_is_without_a_code() -> None:
    assert set(ACTIONS.values()) == {xid.action for xid in CODES.values()}


@pytest.mark.parametrize("code", [0, 174, 177, 999, 123_456])
def test_of_a_code_that_is_not_in_the_table_it_is_said_so(code: int) -> None:
    xid = explained(code)
    assert (xid.code, xid.reach, xid.severity) == (code, XidClass.INFO, Severity.WARN)
    assert f"does not know Xid {code}" in xid.meaning


def test_a_code_that_stands_twice_is_refused() -> None:
    row = "\tinfo\tname\tMeaning.\twatch"
    with pytest.raises(ValueError, match="Xid 7 stands there twice"):
        table(f"heading\n5-8{row}\n7{row}")


def test_severities_rank_as_pythons_levels_do() -> None:
    names = [Severity.INFO, Severity.WARN, Severity.ERROR, Severity.FATAL]
    levels = [logging.getLevelName(severity.name) for severity in names]
    assert sorted(names) == names
    assert sorted(levels) == levels
