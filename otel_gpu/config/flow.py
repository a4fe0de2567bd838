"""A value as YAML on one line, quoted where YAML, of whatever version, would take it amiss."""

from __future__ import annotations

import re
from typing import Any

import yaml

from otel_gpu.config.document import plain

_BARE = re.compile(r"[A-Za-z/][\w./:*+-]*[\w/*]|[0-9][\w.]*|[A-Za-z]", re.ASCII)
_YAML_1_1 = yaml.resolver.Resolver()


def flow(value: Any) -> str:
    """Write text, a number, a bool, None, or a list or mapping of them."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow(key)}: {flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, str):
        return value if _stands_bare(value) else _quoted(value)
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return repr(value)


def _stands_bare(text: str) -> bool:
    if not _BARE.fullmatch(text) or plain(text) != text:
        return False
    tag = _YAML_1_1.resolve(  # type: ignore[no-untyped-call]  # the stubs leave it untyped
        yaml.ScalarNode, text, (True, False)
    )
    return bool(tag == "tag:yaml.org,2002:str")


def _quoted(text: str) -> str:
    written = yaml.safe_dump(text, default_style='"', allow_unicode=True, width=2**31)
    return str(written).removesuffix("\n")
