"""Files that are made from the catalog, the settings and the command line, and never by hand.

`outputs` says what each should hold; `rewrite` makes it so, `differing` only looks. CI looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from otel_gpu.config import shipped_yaml
from otel_gpu.render import commands, options, reference

Outputs = Mapping[str, str]  # text by path in the repository


def outputs(command_line: Any, troubleshooting: str) -> Outputs:
    """Give the text of every made file.

    `command_line` is the click command of the CLI, `troubleshooting` what doctor says of its
    findings.
    """
    return {
        "config/agent.yaml": shipped_yaml(),
        "docs/metrics.md": reference.markdown(),
        "docs/configuration.md": options.markdown(),
        "docs/commands.md": commands.markdown(command_line),
        "docs/troubleshooting.md": troubleshooting,
    }


def differing(root: Path, made: Outputs) -> list[str]:
    """Give the paths whose file is not what it should be."""
    return [path for path, text in made.items() if current(root / path) != text]


def rewrite(root: Path, made: Outputs) -> list[str]:
    """Write the files that differ; give their paths."""
    changed = differing(root, made)
    for path in changed:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(made[path], encoding="utf-8")
    return changed


def current(path: Path) -> str | None:
    """Read a file; None where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
