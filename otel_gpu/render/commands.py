"""docs/commands.md: the command line's own help, command by command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

HEAD = """# Commands

This page is made from `--help`; `make render` rewrites it.
"""
WIDTH = 88


def markdown(root: Any) -> str:
    """Write the page from a click group."""
    sections = [section(path, command) for path, command in walk(root, ("otel-gpu",))]
    return "\n".join([HEAD, *sections])


def walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Give every command with its words, groups before their members."""
    yield path, command
    for name, member in sorted(getattr(command, "commands", {}).items()):
        yield from walk(member, (*path, name))


def section(path: tuple[str, ...], command: Any) -> str:
    """Write one command: its name, what it does, its arguments and options."""
    context = command.make_context(path[-1], [], resilient_parsing=True)
    rows = [
        record
        for parameter in command.get_params(context)
        if (record := parameter.get_help_record(context))
    ]
    lines = [f"## `{' '.join(path)}`", "", command.help or "", ""]
    if rows:
        lines += ["| | |", "|---|---|"]
        lines += [f"| `{cell(name)}` | {cell(text)} |" for name, text in rows]
        lines += [""]
    return "\n".join(lines)


def cell(text: str) -> str:
    """Keep a cell in its column."""
    return " ".join(text.split()).replace("|", "\\|")
