"""Audits what the lock file installs: known vulnerabilities, licences, and that nothing lacks.

    python -m tests.security.audit installed    # in an environment made from the lock file
    python -m tests.security.audit report FILE  # over a report of `pip-audit --format json`

`.ci/audit` does both. Exits with 1 when something is wrong.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.markers import Marker

from tests.security.lock import LOCK, Pin, direct, faults, pins

PERMISSIVE = re.compile(
    r"((3-Clause )?BSD|0BSD|MIT|Apache|ISC|PSF|Python Software Foundation|Zlib|Unlicense)\b.*",
    re.IGNORECASE,
)
EXCEPTIONS = {
    "certifi": "MPL-2.0",  # on the file of authorities itself, which is passed on as it is
}


def licence_fault(name: str, fields: Mapping[str, Sequence[str]]) -> str:
    """Say which licence of a distribution is more than permissive; "" where none is."""
    said = [
        *fields.get("License-Expression", ()),
        *(
            each.rpartition(" :: ")[2]
            for each in fields.get("Classifier", ())
            if each.startswith("License :: ") and each != "License :: OSI Approved"
        ),
    ] or [each.splitlines()[0] for each in fields.get("License", ()) if each.strip()]
    if not said:
        return f"{name} says no licence"
    wrong = [each for each in said if not _is_permissive(each) and EXCEPTIONS.get(name) is None]
    return f"{name}: {', '.join(wrong)} is not known as permissive" if wrong else ""


def _is_permissive(expression: str) -> bool:
    """Judge an SPDX expression, or a name: all that is joined by AND must be."""
    parts = re.split(r"\s+AND\s+", expression.strip("() "))
    return all(
        any(PERMISSIVE.fullmatch(each.strip("() ")) for each in re.split(r"\s+OR\s+", part))
        for part in parts
    )


def verdict(report: Sequence[Mapping[str, Any]]) -> tuple[int, str]:
    """Give the exit status and the words for the dependencies in a report of pip-audit.

    pip-audit itself is content when the service did not know a single one.
    """
    if not report:
        return 1, "not audited: the report has no pins"
    skipped = [each["name"] for each in report if "skip_reason" in each]
    broken = [each for each in report if each.get("vulns")]
    if len(skipped) == len(report):
        return 0, f"not audited: the service knows none of the {len(report)} pins"
    lines = [
        f"VULNERABLE: {each['name']} {each['version']}: {one['id']}, "
        f"fixed in {', '.join(one['fix_versions']) or 'no version'}"
        for each in broken
        for one in each["vulns"]
    ]
    unknown = f"; not known to the service: {', '.join(skipped)}" if skipped else ""
    lines.append(f"audited: {len(report) - len(skipped)} of {len(report)} pins{unknown}")
    return int(bool(broken)), "\n".join(lines)


def installed_faults(found: Sequence[Pin]) -> Iterator[str]:
    """Judge the environment that was made from the lock file: this one."""

    def needs(pin: Pin) -> Iterable[str] | None:
        try:
            return distribution(pin.name).requires or []
        except PackageNotFoundError:
            return None

    yield from faults(found, direct(), needs)
    for pin in found:
        if pin.marker and not Marker(pin.marker).evaluate():
            continue
        try:
            made = distribution(pin.name)
        except PackageNotFoundError:
            yield f"{pin.name} is pinned, and was not installed"
            continue
        if made.version != str(pin.version):
            yield f"{pin.name} {made.version} was installed instead of {pin.version}"
        fields = ("License-Expression", "License", "Classifier")
        if told := licence_fault(
            pin.name, {field: made.metadata.get_all(field) or [] for field in fields}
        ):
            yield told


def main(words: Sequence[str]) -> int:
    """Do one of the two; give the exit status."""
    if words[:1] == ["installed"]:
        found = pins(LOCK.read_text(encoding="utf-8"))
        wrong = list(installed_faults(found))
        sys.stdout.writelines(f"{line}\n" for line in wrong)
        sys.stdout.write(f"lock: {len(found)} pins, {len(wrong)} faults\n")
        return int(bool(wrong))
    if words[:1] == ["report"] and len(words) == 2:
        report = json.loads(Path(words[1]).read_text(encoding="utf-8"))
        status, text = verdict(report["dependencies"])
        sys.stdout.write(f"{text}\n")
        return status
    sys.stderr.write(f"{__doc__}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
