"""`${NAME}`, `${NAME:-default}` and `$$` in the values of the file."""

from __future__ import annotations

import re
from collections.abc import Mapping

_REFERENCE = re.compile(
    r"\$(?:(?P<dollar>\$)|\{(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-[^}\n]*)?\})?)"
)


def literal(text: str) -> str:
    """Write a text so that `expand` gives it back: where a reference could begin, `$` is `$$`."""
    return text.replace("$", "$$") if _REFERENCE.search(text) else text


def expand(text: str, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """Replace every reference; give the text, and what is wrong with the references.

    The syntax is the one of OpenTelemetry's declarative configuration: a default also stands for
    an empty variable, `$$` is a dollar sign, and what a variable holds is not expanded again.
    """
    problems: list[str] = []

    def replace(match: re.Match[str]) -> str:
        value = _value(match, environ)
        if value is None:
            problems.append(_problem(match))
        return value or ""

    return _REFERENCE.sub(replace, text), problems


def _value(match: re.Match[str], environ: Mapping[str, str]) -> str | None:
    name, default = match["name"], match["default"]
    if name is None:
        return match["dollar"]
    if default is None:
        return environ.get(name)
    return environ.get(name) or default.removeprefix(":-")


def _problem(match: re.Match[str]) -> str:
    if match["name"]:
        name = match["name"]
        return f"${{{name}}} is not set in the environment; set {name}, or write ${{{name}:-...}}"
    return "${ does not begin ${NAME} or ${NAME:-default}; write $${ for the characters themselves"
