"""The lock file pins all that pyproject.toml asks for, and nothing else."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires, version

import pytest
from packaging.requirements import Requirement

from tests.security.audit import licence_fault, verdict
from tests.security.lock import LOCK, Pin, direct, faults, pins

HASH = "--hash=sha256:" + "0" * 64


def installed_needs(pin: Pin) -> list[str] | None:
    """Ask the installed distribution, where it is the pinned one."""
    try:
        if version(pin.name) != str(pin.version):
            return None
    except PackageNotFoundError:
        return None
    return requires(pin.name) or []


def test_the_lock_agrees_with_pyproject_and_with_what_the_pins_need() -> None:
    found = pins(LOCK.read_text(encoding="utf-8"))

    assert list(faults(found, direct(), installed_needs)) == []


def test_the_lock_names_no_index_and_no_address() -> None:
    lines = [
        line for line in LOCK.read_text(encoding="utf-8").splitlines() if not line.startswith("#")
    ]

    assert not [line for line in lines if re.search(r"://|^-", line.strip().split("--hash")[0])]
    assert {len(line.strip().removesuffix(" \\")) for line in lines if "--hash" in line} == {78}


def test_each_fault_of_a_lock_is_found() -> None:
    lines = ("a==1.0", "b==2.0", "idle==1", "windows==1 ; sys_platform == 'win32'")
    text = "".join(f"{line} {HASH}\n" for line in lines)
    needs = {"a": ["b>=3", "c", "d ; extra == 'more'", "e ; sys_platform == 'win32'"]}
    asked = [Requirement("A>=1"), Requirement("f"), Requirement("b<3")]

    told = set(faults(pins(text), asked, lambda pin: needs.get(pin.name, [])))

    assert told == {
        "b 2.0 is not >=3, as a needs",
        "c, which a needs, is not pinned",
        "f, which pyproject.toml needs, is not pinned",
        "idle is pinned, and nothing needs it",
    }
    assert list(faults(pins("a==1"), [Requirement("a")], lambda _: [])) == ["a has no hash"]


@pytest.mark.parametrize(
    "line",
    [
        f"a>=1 {HASH}",
        f"a==1.* {HASH}",
        f"a {HASH}",
        "a==1 --hash=md5:0",
        "--index-url https://example.org/simple",
        f"a @ https://example.org/a.whl {HASH}",
    ],
)
def test_what_is_not_a_pin_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        pins(line)


# The verdict over an audit's report

CLEAN = {"name": "a", "version": "1", "vulns": []}
SKIPPED = {"name": "b", "skip_reason": "not found"}
BROKEN = {"name": "c", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}


def test_a_known_vulnerability_fails_and_is_named() -> None:
    assert verdict([CLEAN, SKIPPED, BROKEN]) == (
        1,
        "VULNERABLE: c 1: PYSEC-1, fixed in 2\naudited: 2 of 3 pins; not known to the service: b",
    )


def test_what_was_audited_is_counted() -> None:
    assert verdict([CLEAN]) == (0, "audited: 1 of 1 pins")


def test_a_service_that_knows_nothing_has_audited_nothing() -> None:
    assert verdict([SKIPPED, SKIPPED]) == (0, "not audited: the service knows none of the 2 pins")
    assert verdict([]) == (1, "not audited: the report has no pins")


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"License-Expression": ["MIT"]}, ""),
        ({"License-Expression": ["Apache-2.0 OR BSD-3-Clause"]}, ""),
        ({"License-Expression": ["MIT AND GPL-3.0-only"]}, "MIT AND GPL-3.0-only"),
        ({"Classifier": ["License :: OSI Approved :: BSD License"]}, ""),
        ({"Classifier": ["License :: OSI Approved :: GNU General Public License v3"]}, "GNU"),
        ({"License": ["BSD-3-Clause"]}, ""),
        ({"License": ["All rights reserved"]}, "All rights reserved"),
        ({}, "says no licence"),
    ],
)
def test_licences_that_ask_for_more_than_a_notice_are_named(
    fields: dict[str, list[str]], fault: str
) -> None:
    told = licence_fault("some", fields)

    assert bool(told) == bool(fault)
    assert fault in told
