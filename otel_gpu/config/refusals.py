"""What pydantic refused, in our words: each as a fault at the place that it came from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import ValidationError

from otel_gpu.config.faults import Fault, KeyPath, RuleError, dotted, nearest
from otel_gpu.config.keys import keys
from otel_gpu.config.masks import shown

_ENDINGS = {
    "model_type": "is not a mapping of keys to values",
    "dict_type": "is not a mapping of keys to values",
    "tuple_type": "is not a list, such as [a, b]",
    "string_type": "is not text",
    "string_unicode": "is not text",
    "bool_type": "is not true or false",
    "bool_parsing": "is not true or false",
}


def faults(error: ValidationError, whence: Callable[[KeyPath], str]) -> list[Fault]:
    """Word every error of a validation; `whence` tells where the value at a key path was given."""
    found = [each for details in error.errors(include_url=False) for each in _worded(details)]
    return [Fault(whence(path), dotted(path), words) for path, words in found]


def _worded(details: Any) -> Iterator[tuple[KeyPath, str]]:
    path, cause = details["loc"], details.get("ctx", {}).get("error")
    if isinstance(cause, RuleError):
        yield from (((*path, *below), words) for below, words in cause.found)
    elif details["type"] == "extra_forbidden":
        yield path, unknown(path)
    elif details["type"] == "missing":
        yield path, f"is missing. {_meaning(path)}"
    else:
        yield path, f"{shown(path, details['input'])} {_ending(details, cause)}"


def _ending(details: Any, cause: object) -> str:
    if cause is not None:
        return str(cause)
    if details["type"] == "literal_error":
        return _choice(details)
    return _ENDINGS.get(details["type"], f"is not possible here ({details['msg']})")


def _choice(details: Any) -> str:
    words = re.findall("'([^']*)'", details["ctx"]["expected"])
    if len(words) == 1:
        return f"is not {words[0]}, the only one there is"
    meant = nearest(str(details["input"]), words)
    choice = f"is none of {', '.join(words)}"
    return f"{choice}; did you mean {meant}?" if meant else choice


def unknown(path: KeyPath) -> str:
    """Say what was probably meant by a key that is not there, or else what could stand there."""
    *_, word = path
    parent = _by_name(path[:-1])
    here = [key.path[-1] for key in keys() if key.path[:-1] == parent]
    if meant := nearest(str(word), here):
        return f"unknown key; did you mean {dotted((*path[:-1], meant))}?"
    elsewhere = {key.path[-1]: key.name for key in reversed(keys())}
    if meant := nearest(str(word), elsewhere, 0.85):
        return f"unknown key here; did you mean {elsewhere[meant]}?"
    return f"unknown key; {_known(here)}"


def _known(here: list[str]) -> str:
    return f"the keys here are {', '.join(here)}" if here else "there are no keys here"


def _by_name(path: KeyPath) -> tuple[str, ...]:
    """Leave the list indices out: an option of a part goes by the part's name."""
    return tuple(part for part in path if isinstance(part, str))


def _meaning(path: KeyPath) -> str:
    name = _by_name(path)
    return next(key.description for key in keys() if key.path == name)
