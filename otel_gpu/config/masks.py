"""What must not be shown: values of headers, and credentials in URLs and options."""

from __future__ import annotations

import re
from typing import Any

from otel_gpu.config.faults import KeyPath

MASK = "***"

_CREDENTIALS = re.compile(r"(?<=://)\S*@")  # up to the last @: a password may hold one, and a /
_QUERY = re.compile(r"(?<=\?)\S+")
_AIMED_CREDENTIALS = re.compile(r"(^[a-z]*:?//)?.*@", re.IGNORECASE | re.DOTALL)
_AIMED_QUERY = re.compile(r"(?<=\?).+", re.DOTALL)
_SECRET = re.compile(
    "headers|.*(?:passw|secret|token|api_?key|credential|authorization).*", re.IGNORECASE
)


def masked_url(text: str) -> str:
    """Mask what a URL carries before @ and after ?; other text stays as it is."""
    if "://" not in text:
        return text
    return _QUERY.sub(MASK, _CREDENTIALS.sub(f"{MASK}@", text))


def masked_target(text: str) -> str:
    """Mask the same in a text that is meant as a target, also where it is no whole URL.

    Such as a redirect's location without a host, or an endpoint without `http://`.
    """
    return _AIMED_QUERY.sub(MASK, _AIMED_CREDENTIALS.sub(rf"\g<1>{MASK}@", text, count=1))


def secret(path: KeyPath) -> bool:
    """Whether what stands at a key path, or under it, is a secret."""
    return any(isinstance(part, str) and _SECRET.fullmatch(part) is not None for part in path)


def masked(path: KeyPath, value: Any) -> Any:
    """Give the value, or the list or mapping of values, as it may be shown."""
    if isinstance(value, dict):
        return {key: masked((*path, key), each) for key, each in value.items()}
    if isinstance(value, list):
        return [masked(path, each) for each in value]
    if value is None or isinstance(value, bool):
        return value
    if secret(path):
        return MASK
    if not isinstance(value, str):
        return value
    return masked_target(value) if path and path[-1] == "endpoint" else masked_url(value)


def shown(path: KeyPath, value: object) -> str:
    """Write a wrong value for a message: short, and without what is secret."""
    if secret(path):
        return MASK
    if value is None or value == "":
        return "an empty value"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(masked(path, value))
    return text if len(text) <= 80 else f"{text[:77]}..."
