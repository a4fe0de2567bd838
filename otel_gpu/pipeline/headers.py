"""A file of request headers: credentials that stand neither in agent.yaml nor in its log."""

from __future__ import annotations

import re
from pathlib import Path

from otel_gpu.model import ConfigError

_LINE = re.compile(r"\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*[:=]\s*([\t\x20-\x7e]*?)\s*")
"""A header's name (RFC 9110, a token), `:` or `=`, and its value, which is ASCII."""


def read_headers(path: Path | str | None) -> dict[str, str]:
    """Read one header a line, as `key: value` or `key=value`; `#` begins a comment line.

    Raises ConfigError with the line's number, never with what stands there.
    """
    if not path:
        return {}
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"pipeline.otlp.headers_file: {path}: {error}") from error
    return dict(
        _header(f"{path}, line {number}", line)
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.lstrip().startswith("#")
    )


def _header(where: str, line: str) -> tuple[str, str]:
    match = _LINE.fullmatch(line)
    if match is None:
        raise ConfigError(
            f"pipeline.otlp.headers_file: {where}: not a header: write one `key: value` a line, "
            "in ASCII"
        )
    return match[1], match[2]
